#include "base/lock.h"

#include <sched.h>

void tsl_lock_wait(struct tsl_lock *lock) {
  while (!tsl_lock_try_briefly(lock)) sched_yield();
}
