// record: what is known of each unit, in a dense array far from the blocks: 19 cache lines a unit,
// an odd number so that the records of neighbouring units fall on different cache sets. The first
// 18 lines are the slab layer's; the last one is the memory layer's and is declared here.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/region.h"

enum { TSL_RECORD_BYTES = 19 * TSL_CACHE_LINE, TSL_RECORD_SLAB_BYTES = 18 * TSL_CACHE_LINE };

struct tsl_span {
  uint32_t cache_next;  // [remote] link while the unit is in the unit cache
  uint32_t units;       // [owner of the block] of a large block, with its guard and its room
  size_t bytes;         // [owner of the block] usable bytes of a large block
  uint32_t epoch;       // [owner of the block or slab] slot of its epoch
  tsl_unit next;        // [owner of the list] neighbours on the list of a heap's slabs,
  tsl_unit prev;        // [owner of the list] or of an epoch's large blocks
  uint32_t sample;      // [owner of the block] of a large block; 0: none
  uint32_t pieces;      // [owner of the block] of a large block: how often its pages were moved
  uint32_t guard;       // [owner of the block] secure build: of a large block, the unit whose first
                        // page is its guard, counted from the block's first one; 0: none
  uint32_t kept;        // [lock:large] of a large block: its epoch's end spares it,
  uint32_t rank;        // [lock:large, read by any] or did (spare.h); 0: no end did
  uint32_t holed;       // [remote] 1: pages of the unit, or of those that begin with it, went back
                        // while it was in use
} TSL_ON_LINE;

_Static_assert(TSL_RECORD_SLAB_BYTES + sizeof(struct tsl_span) == TSL_RECORD_BYTES,
               "the last line");

TSL_ALWAYS_INLINE uintptr_t tsl_record_address(size_t unit) {
  return tsl_region.records + unit * TSL_RECORD_BYTES;
}
TSL_ALWAYS_INLINE struct tsl_span *tsl_span_at(size_t unit) {
  return (struct tsl_span *)(tsl_record_address(unit) + TSL_RECORD_SLAB_BYTES);
}
