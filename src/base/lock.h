// lock: a small lock for slow paths whose holders never wait, allocate or call the system for long.
// No lock is held across a fork on purpose, so the child may find one whose holder it does not
// have: it takes that lock over, and mends what the lock guards.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

struct tsl_lock {
  uintptr_t holder;  // [remote] the thread that holds it (tsl_lock_self); 0: none
};

enum { TSL_LOCK_SPINS = 64 };

// Locks that the thread holds or is about to take. Its address is the thread's name, and the same
// in the child of a fork.
TSL_HIDDEN extern TSL_TLS uint32_t tsl_locks_held;

// Called by who waits for a lock, again and again. Set once, by fork.c.
TSL_HIDDEN extern void (*tsl_lock_waits)(void);

TSL_HIDDEN void tsl_lock_wait(struct tsl_lock *lock);

// In the child of a fork: true when a thread held the lock that the child does not have. The lock
// is free then; what it guards is as that thread left it.
TSL_HIDDEN bool tsl_lock_take_over(struct tsl_lock *lock);

static inline uintptr_t tsl_lock_self(void) { return (uintptr_t)&tsl_locks_held; }

// The count goes first: a signal handler that forks must not miss a lock.
static inline bool tsl_lock_try(struct tsl_lock *lock) {
  uintptr_t none = 0;
  if (tsl_load_relaxed(&lock->holder) != 0) return false;
  tsl_locks_held++;
  tsl_compiler_fence();                                                     // pairs: locks-held
  if (tsl_cas_acquire(&lock->holder, &none, tsl_lock_self())) return true;  // pairs: lock
  tsl_locks_held--;
  return false;
}

static inline void tsl_lock_acquire(struct tsl_lock *lock) {
  if (tsl_unlikely(!tsl_lock_try(lock))) tsl_lock_wait(lock);
}

static inline void tsl_lock_release(struct tsl_lock *lock) {
  tsl_store_release(&lock->holder, 0);  // pairs: lock
  tsl_compiler_fence();                 // pairs: locks-held
  tsl_locks_held--;
}

// Between these two a heap is neither the thread's nor the pool's. A signal handler that forks
// leaves heaps alone then, as if the thread held a lock.
static inline void tsl_busy_begin(void) {
  tsl_locks_held++;
  tsl_compiler_fence();  // pairs: locks-held
}

static inline void tsl_busy_end(void) {
  tsl_compiler_fence();  // pairs: locks-held
  tsl_locks_held--;
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
