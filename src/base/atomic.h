// atomic: the one door to atomic operations. The memory order stands in the operation's name; every
// acquire and release at a call site names its partner (`// pairs: label`, explained in
// docs/memory-model.md). Relaxed operations are for fields with a single writer and for counters
// that only inform.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define tsl_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
// The same load, as the memory operand of the instruction that uses the value: for an atomic load
// gcc would emit an instruction of its own.
#if defined(__SANITIZE_THREAD__)
#define tsl_load_operand(p) tsl_load_relaxed(p)
#else
#define tsl_load_operand(p) (*(p))
#endif
#define tsl_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define tsl_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define tsl_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define tsl_exchange_relaxed(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)
#define tsl_exchange_acquire(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define tsl_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

#define tsl_or_relaxed(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define tsl_and_relaxed(p, v) __atomic_fetch_and((p), (v), __ATOMIC_RELAXED)
#define tsl_or_release(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELEASE)
#define tsl_or_acq_rel(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define tsl_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define tsl_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define tsl_add_acq_rel(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define tsl_sub_relaxed(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)
#define tsl_sub_acq_rel(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)

// On failure `*expected` holds the value seen.
#define tsl_cas_relaxed(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define tsl_cas_acquire(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#define tsl_cas_release(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define tsl_cas_acq_rel(p, expected, v) \
  __atomic_compare_exchange_n((p), (expected), (v), true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

// A counter that one thread writes and others may read: no locked instruction.
#define tsl_count(p, n) tsl_store_relaxed((p), tsl_load_relaxed(p) + (n))

// Keeps the compiler from moving memory accesses across it. Emits no instruction.
#define tsl_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
static inline void tsl_fence_seq_cst(void) {
#if defined(__SANITIZE_THREAD__)
  uint32_t place = 0;  // which ThreadSanitizer understands
  __atomic_fetch_add(&place, 1, __ATOMIC_SEQ_CST);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// The same, where the thread's last access by an atomic operation was one that reads and writes: on
// x86-64 that is a fence already.
static inline void tsl_fence_after_exchange(void) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  tsl_compiler_fence();
#else
  tsl_fence_seq_cst();
#endif
}

static inline void tsl_cpu_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
