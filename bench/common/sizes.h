// Sizes as programs ask for them: many small, few large.
#ifndef BENCH_SIZES_H
#define BENCH_SIZES_H

#include "random.h"

// A power law: each doubling from `least` is half as likely as the one before, `doublings` of them,
// evenly spread within.
static inline size_t size_skewed(uint32_t *state, uint32_t least, uint32_t doublings) {
  uint32_t choice = random_next(state) >> (32 - doublings);
  uint32_t doubling = choice == 0 ? doublings - 1 : (uint32_t)__builtin_ctz(choice);
  uint32_t base = least << doubling;
  return base + random_below(state, base);
}

#endif
