// A ring from one producer to one consumer, handed over in batches so that the ring costs little
// beside the allocator.
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#define RING_SLOTS 8192u
#define RING_BATCH 64u
#define RING_SPINS 2000u

typedef struct ring {
  void *slots[RING_SLOTS];
  _Alignas(64) _Atomic uint64_t written;
  _Alignas(64) _Atomic uint64_t taken;
} ring;

// Where other programs take the processors, spinning on would only keep the partner from running.
static inline void ring_pause(unsigned waited) {
  if (waited >= RING_SPINS) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

// Waits until a whole batch fits at `position`.
static inline void ring_wait_for_room(ring *r, uint64_t position) {
  uint64_t least = position + RING_BATCH - RING_SLOTS;
  for (unsigned waited = 0; position + RING_BATCH > RING_SLOTS; waited++) {
    if (atomic_load_explicit(&r->taken, memory_order_acquire) >= least) {
      return;
    }
    ring_pause(waited);
  }
}

// Waits until something lies at `position`; returns the position up to which the ring is filled.
static inline uint64_t ring_wait_for_more(ring *r, uint64_t position) {
  uint64_t written = atomic_load_explicit(&r->written, memory_order_acquire);
  for (unsigned waited = 0; written == position; waited++) {
    ring_pause(waited);
    written = atomic_load_explicit(&r->written, memory_order_acquire);
  }
  return written;
}

#endif
