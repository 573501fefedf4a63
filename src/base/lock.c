#include "base/lock.h"

#include <sched.h>

TSL_TLS uint32_t tsl_locks_held;
TSL_TLS uint32_t tsl_lock_ranks;

static void wait_on(void) {}

void (*tsl_lock_waits)(void) = wait_on;

void tsl_lock_wait(struct tsl_lock *lock) TSL_NOT_ANALYSED {
  while (!tsl_lock_try_briefly(lock)) {
    tsl_lock_waits();
    sched_yield();
  }
}

bool tsl_lock_take_over(struct tsl_lock *lock) {
  uintptr_t holder = tsl_load_relaxed(&lock->holder);
  if (holder == 0 || holder == tsl_lock_self()) return false;
  tsl_store_relaxed(&lock->holder, 0);
  return true;
}
