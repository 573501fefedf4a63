// Blocks whose user remembers their size, as sized delete wants it.
#ifndef BENCH_BLOCKS_H
#define BENCH_BLOCKS_H

#include "memory.h"

#include <stdlib.h>

typedef struct block {
  char *start;
  size_t bytes;
} block;

static inline block block_make(size_t bytes) {
  char *start = malloc(bytes);
  memory_demand(start);
  memory_touch(start, bytes);
  return (block){start, bytes};
}

static inline void block_replace(block *b, size_t bytes) {
  free(b->start);
  *b = block_make(bytes);
}

#endif
