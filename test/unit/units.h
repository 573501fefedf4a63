// units: a region on the fake system, and units that are taken from it.
#pragma once

#include "memory/growth.h"
#include "memory/units.h"
#include "os_fake.h"
#include "test.h"

enum { SEGMENT = TSL_SEGMENT_UNITS };

// A region of one small segment, and one of sixteen whole ones.
#define SMALL ((size_t)1 << 26)
#define LARGE OS_FAKE_MOST_BYTES
_Static_assert(LARGE >> TSL_UNIT_LOG2 >= 8 * SEGMENT, "a large region has many segments");

// The first units that open lie behind the headers, in the middle of a segment.
static inline void open_region(size_t bytes) {
  os_fake.limit_bytes = bytes;
  CHECK(tsl_region_init());
  CHECK(tsl_region_grow(32));
}

static inline size_t first_segment(void) { return tsl_region.first_unit / SEGMENT; }

static inline tsl_unit take(size_t count, size_t alignment) {
  bool clean;
  tsl_unit first = tsl_units_take(count, alignment, &clean);
  CHECK(first >= tsl_region.first_unit && first + count <= tsl_region.units);
  CHECK_EQ(first % alignment, 0);
  return first;
}

// Opens some and takes every unit that is open.
static inline void take_all_open(void) {
  bool clean;
  while (tsl_region.units < tsl_region.first_unit + 64) CHECK(tsl_region_grow(1));
  for (size_t unit = tsl_region.first_unit; unit < tsl_region.units; unit++) {
    tsl_units_take_at((tsl_unit)unit, 1, &clean);
  }
  CHECK_EQ(tsl_units_free(), 0);
}
