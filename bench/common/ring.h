// A ring from one producer to one consumer, handed over in batches so that the ring costs little
// beside the allocator.
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define RING_SLOTS 8192u
#define RING_BATCH 64u

typedef struct ring {
  void *slots[RING_SLOTS];
  _Alignas(64) _Atomic uint64_t written;
  _Alignas(64) _Atomic uint64_t taken;
} ring;

static inline void ring_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

// Waits until a whole batch fits at `position`.
static inline void ring_wait_for_room(ring *r, uint64_t position) {
  while (position + RING_BATCH - atomic_load_explicit(&r->taken, memory_order_acquire) >
         RING_SLOTS) {
    ring_pause();
  }
}

// Waits until something lies at `position`; returns the position up to which the ring is filled.
static inline uint64_t ring_wait_for_more(ring *r, uint64_t position) {
  uint64_t written;
  while ((written = atomic_load_explicit(&r->written, memory_order_acquire)) == position) {
    ring_pause();
  }
  return written;
}

#endif
