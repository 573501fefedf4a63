// takes: what a small block takes of a slab or cell, which is what epochs and statistics count. In
// the secure build that is more than the program may use.
#pragma once

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "slab/canary.h"

// The class of a block of that size.
static inline unsigned takes_class(size_t bytes) {
  return tsl_sizeclass_of(bytes + TSL_CANARY_BYTES);
}

static inline size_t takes(size_t bytes) {
  if (bytes > TSL_CANARY_LIMIT) return tsl_good_size(bytes);
  return tsl_sizeclasses[takes_class(bytes)].bytes;
}

// What a live block takes.
static inline size_t takes_of(const void *block) {
  if (!TSL_SECURE) return tsl_usable(block);
  unsigned code = tsl_entry_code(tsl_map_lookup(block));
  return code < TSL_CODES ? tsl_sizeclasses[code / 2].bytes : tsl_usable(block);
}
