// lock: a small lock for slow paths whose holders never wait, allocate or call the system for long.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

struct tsl_lock {
  uint32_t held;  // [remote]
};

enum { TSL_LOCK_SPINS = 64 };

TSL_HIDDEN void tsl_lock_wait(struct tsl_lock *lock);

static inline bool tsl_lock_try(struct tsl_lock *lock) {
  return tsl_load_relaxed(&lock->held) == 0 &&
         tsl_exchange_acquire(&lock->held, 1) == 0;  // pairs: lock
}

static inline void tsl_lock_acquire(struct tsl_lock *lock) {
  if (tsl_unlikely(!tsl_lock_try(lock))) tsl_lock_wait(lock);
}

static inline void tsl_lock_release(struct tsl_lock *lock) {
  tsl_store_release(&lock->held, 0);  // pairs: lock
}

// Tries for a moment: long enough for a holder that runs, not for one that the system has set
// aside.
static inline bool tsl_lock_try_briefly(struct tsl_lock *lock) {
  for (int i = 0; i < TSL_LOCK_SPINS; i++) {
    if (tsl_lock_try(lock)) return true;
    tsl_cpu_relax();
  }
  return false;
}
