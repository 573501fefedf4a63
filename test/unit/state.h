// state: the whole allocator at rest, checked from outside: every structure is valid, and every
// unit has one owner.
#pragma once

#include "base/bits.h"
#include "epoch/heap.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "test.h"

static inline void state_check_segments(void) {
  size_t dirty = 0, open = tsl_divide_up(tsl_region.units, TSL_SEGMENT_UNITS);
  for (size_t i = tsl_region.first_unit / TSL_SEGMENT_UNITS; i < open; i++) {
    const struct tsl_segment *segment = tsl_segment_at(i);
    CHECK(tsl_segment_valid(segment));
    CHECK_EQ(segment->lock.held, 0);
    for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) dirty += tsl_bit_count(segment->dirty[w]);
  }
  CHECK_EQ(dirty, tsl_units_dirty());
}

// Units of the block or slab that begins here; all their map entries are checked.
static inline size_t state_check_owner(size_t unit) {
  uint32_t entry = *tsl_map_entry(unit), number = entry >> TSL_CODE_BITS;
  unsigned code = entry & ((1u << TSL_CODE_BITS) - 1);
  CHECK(number >= 1 && number <= tsl_region.last_heap);
  bool large = code == TSL_CODE_LARGE;
  CHECK(large || (code % 2 == 0 && code < TSL_CODES));
  size_t units = large ? tsl_span_at(unit)->units : tsl_sizeclasses[code / 2].units;
  CHECK(large || tsl_slab_at(unit)->class == code / 2);
  CHECK(large || tsl_slab_valid(tsl_slab_at(unit)));
  for (size_t i = 1; i < units; i++) CHECK_EQ(*tsl_map_entry(unit + i), large ? 0 : entry);
  return units;
}

static inline size_t state_owned_units(void) {
  size_t owned = 0;
  for (size_t unit = tsl_region.first_unit; unit < tsl_region.units;) {
    size_t units = *tsl_map_entry(unit) == 0 ? 0 : state_check_owner(unit);
    owned += units;
    unit += units == 0 ? 1 : units;
  }
  return owned;
}

static inline size_t state_cached_units(void) {
  size_t cached = tsl_unit_cache_units();
  for (uint32_t i = 1; i <= tsl_region.last_heap; i++) cached += tsl_heap_at(i)->unit_count;
  return cached;
}

static inline void state_check(void) {
  state_check_segments();
  for (uint32_t i = 1; i <= tsl_region.last_heap; i++) {
    if (tsl_heap_at(i)->number != 0) CHECK(tsl_heap_valid(tsl_heap_at(i)));
  }
  if (tsl_region.units == 0) return;
  CHECK_EQ(state_owned_units() + state_cached_units() + tsl_units_free(), tsl_units_open());
}
