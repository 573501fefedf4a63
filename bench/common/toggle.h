// A slot at random: the block there is freed, or one of 16 to 1,039 bytes is allocated.
#ifndef BENCH_TOGGLE_H
#define BENCH_TOGGLE_H

#include "memory.h"
#include "random.h"

#include <stdlib.h>

static inline void slot_toggle(char **slot, uint32_t *state) {
  if (*slot != NULL) {
    free(*slot);
    *slot = NULL;
    return;
  }
  size_t bytes = 16 + (random_next(state) & 1023);
  char *block = malloc(bytes);
  memory_demand(block);
  memory_touch(block, bytes);
  *slot = block;
}

static inline void slots_toggle(char **slots, uint32_t count, uint64_t operations,
                                uint32_t *state) {
  for (uint64_t i = 0; i < operations; i++) {
    slot_toggle(&slots[random_below(state, count)], state);
  }
}

#endif
