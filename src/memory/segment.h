// segment: 128 MiB of units and what is known of each: in use, or free and clean (reads as zero),
// or free and dirty. Runs of units are taken and given back here; a run longer than a segment takes
// whole segments.
//
//  G1  the fields of a segment change under its lock only
//  G2  longest == the longest run of ones in `free`; free_units == the ones in it
//  G3  a unit that is free and not dirty reads as zero; only free units are dirty
//  G4  nobody waits for a segment's lock on the way to an allocation: it looks at the next segment
//      instead
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "memory/region.h"

enum { TSL_SEGMENT_WORDS = TSL_SEGMENT_UNITS / 64 };

struct tsl_segment {
  uint64_t free[TSL_SEGMENT_WORDS];   // [lock:segment] all in use before the segment is opened
  uint64_t dirty[TSL_SEGMENT_WORDS];  // [lock:segment]
  struct tsl_lock lock;               // [remote]
  uint16_t longest;                   // [lock:segment, read by any]
  uint16_t free_units;                // [lock:segment, read by any]
  uint32_t huge;                      // [lock:grow, read by any] see tsl_region_renew
} TSL_ON_LINE;

TSL_ALWAYS_INLINE struct tsl_segment *tsl_segment_at(size_t index) {
  return (struct tsl_segment *)tsl_region.segments + index;
}

// Called by the region as it grows: units [first, first + count) of the segment become free and
// clean.
TSL_HIDDEN void tsl_segment_open(size_t index, size_t first, size_t count);

// Takes `count` neighbouring units whose first is a multiple of `alignment` units (a power of two)
// from the address 0. 0 when neither the segments nor the system have them. `*clean` tells whether
// all of it reads as zero.
TSL_HIDDEN tsl_unit tsl_units_take(size_t count, size_t alignment, bool *clean);

// Takes the units [first, first + count) when all of them are free. No growth, no waiting.
TSL_HIDDEN bool tsl_units_take_at(tsl_unit first, size_t count, bool *clean);

// Gives units back, dirty.
TSL_HIDDEN void tsl_units_give(tsl_unit first, size_t count);

// Purges one run of at most `most` dirty free units, looking from segment `*cursor` on. Returns the
// units purged; 0 when there were none or the system refused.
TSL_HIDDEN size_t tsl_units_purge(size_t *cursor, size_t most);

// Free and dirty units everywhere; a moment's value.
TSL_HIDDEN size_t tsl_units_dirty(void);

// The least tsl_units_dirty() since the last call of this.
TSL_HIDDEN size_t tsl_units_dirty_low(void);

// So many dirty units, given since the last call of that, were free all the time: elsewhere.
TSL_HIDDEN void tsl_units_dirty_before(size_t units);

// Units open so far, and those of them that are free; a moment's value.
TSL_HIDDEN size_t tsl_units_open(void);
TSL_HIDDEN size_t tsl_units_free(void);

// In the child of a fork: takes over what a thread held that the child does not have.
TSL_HIDDEN void tsl_segments_after_fork(void);

TSL_HIDDEN bool tsl_segment_valid(const struct tsl_segment *segment);
