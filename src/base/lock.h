// lock: a small lock for slow paths whose holders never wait, allocate or call the system for long.
// fork() takes no locks, so its child may find a lock held by a thread that only the parent has.
// The child takes that lock over and mends what the lock guards.
//
//  L1  a thread that holds locks takes only one of a lower rank than all of them, so that no two
//      threads wait for each other
#pragma once

#include "base/atomic.h"
#include "base/check.h"
#include "base/compiler.h"

// The innermost first. Locks in zeroed memory are those of segments.
enum tsl_rank {
  TSL_RANK_SEGMENT,
  TSL_RANK_MIRROR,
  TSL_RANK_GROW,
  TSL_RANK_LABELS,
  TSL_RANK_SITES,
  TSL_RANK_DEFERRED,
  TSL_RANK_LARGE,
  TSL_RANK_HOLDS,
  TSL_RANK_INIT,
  TSL_RANK_ROTATION,
};

struct TSL_CAPABILITY tsl_lock {
  uintptr_t holder;    // [remote] the thread that holds it (tsl_lock_self); 0: none
  enum tsl_rank rank;  // [const]
};

enum { TSL_LOCK_SPINS = 64 };

// Locks that the thread holds or is about to take. The address of this variable tells threads
// apart, and is the same in the child of a fork.
TSL_HIDDEN extern TSL_TLS uint32_t tsl_locks_held;

// Bit i: the thread holds a lock of rank i. Kept from debug level 1 on.
TSL_HIDDEN extern TSL_TLS uint32_t tsl_lock_ranks;

// Called again and again by a thread that waits for a lock. Set once, by fork.c.
TSL_HIDDEN extern void (*tsl_lock_waits)(void);

TSL_HIDDEN void tsl_lock_wait(struct tsl_lock *lock) TSL_ACQUIRES(lock);

// In the child of a fork: frees a lock whose holder only the parent has, and returns true. What the
// lock guards is then as that thread left it.
TSL_HIDDEN bool tsl_lock_take_over(struct tsl_lock *lock);

static inline uintptr_t tsl_lock_self(void) { return (uintptr_t)&tsl_locks_held; }

// L1: whether the thread may wait for the lock.
static inline bool tsl_lock_is_below_held(const struct tsl_lock *lock) {
  uint32_t up_to = (UINT32_C(2) << lock->rank) - 1;
  return (tsl_lock_ranks & up_to) == 0;
}

static inline void tsl_lock_note(const struct tsl_lock *lock) {
  tsl_assert(tsl_lock_is_below_held(lock));
  if (TSL_DEBUG >= 1) tsl_lock_ranks |= UINT32_C(1) << lock->rank;
}

static inline void tsl_lock_note_release(const struct tsl_lock *lock) {
  tsl_assert(tsl_load_relaxed(&lock->holder) == tsl_lock_self());
  if (TSL_DEBUG >= 1) tsl_lock_ranks &= ~(UINT32_C(1) << lock->rank);
}

// The count is raised before the lock is taken: a signal handler that forks between the two must
// see that a lock may be held.
static inline bool tsl_lock_try(struct tsl_lock *lock) TSL_TRY_ACQUIRES(lock) TSL_NOT_ANALYSED {
  uintptr_t none = 0;
  if (tsl_load_relaxed(&lock->holder) != 0) return false;
  tsl_locks_held++;
  tsl_compiler_fence();                                          // pairs: locks-held
  if (tsl_cas_acquire(&lock->holder, &none, tsl_lock_self())) {  // pairs: lock
    tsl_lock_note(lock);
    return true;
  }
  tsl_locks_held--;
  return false;
}

static inline void tsl_lock_acquire(struct tsl_lock *lock) TSL_ACQUIRES(lock) TSL_NOT_ANALYSED {
  tsl_assert(tsl_lock_is_below_held(lock));
  if (tsl_unlikely(!tsl_lock_try(lock))) tsl_lock_wait(lock);
}

static inline void tsl_lock_release(struct tsl_lock *lock) TSL_RELEASES(lock) TSL_NOT_ANALYSED {
  tsl_lock_note_release(lock);
  tsl_store_release(&lock->holder, 0);  // pairs: lock
  tsl_compiler_fence();                 // pairs: locks-held
  tsl_locks_held--;
}

// Between these two calls the thread holds a heap that is neither its own nor in the pool. They
// count as a lock: after a fork by a signal handler in between, the child adopts no heaps.
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
static inline bool tsl_lock_try_briefly(struct tsl_lock *lock)
    TSL_TRY_ACQUIRES(lock) TSL_NOT_ANALYSED {
  for (int i = 0; i < TSL_LOCK_SPINS; i++) {
    if (tsl_lock_try(lock)) return true;
    tsl_cpu_relax();
  }
  return false;
}
