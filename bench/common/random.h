// Small fast generators: what they cost must not hide what the allocator costs.
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t random_next(uint32_t *state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

static inline uint32_t random_below(uint32_t *state, uint32_t limit) {
  return (uint32_t)(((uint64_t)random_next(state) * limit) >> 32);
}

// A seed for each thread; xorshift must never start at zero.
static inline uint32_t random_seed(uint64_t seed, unsigned thread) {
  uint32_t mixed = (uint32_t)(seed * 2654435761u) ^ ((thread + 1) * 0x9E3779B9u);
  return mixed == 0 ? 1 : mixed;
}

static inline void random_shuffle(uint32_t *state, uint32_t *order, uint32_t count) {
  for (uint32_t i = count; i > 1; i--) {
    uint32_t j = random_below(state, i);
    uint32_t swapped = order[i - 1];
    order[i - 1] = order[j];
    order[j] = swapped;
  }
}

#endif
