// segment: 128 MiB of units and what is known of each: in use, or free and clean (reads as zero),
// or free and dirty.
//
//  G1  the fields of a segment change under its lock only, but for `huge`
//  G2  longest == the longest run of ones in `free`; free_units == the ones in it
//  G3  a unit that is free and not dirty reads as zero; only free units are dirty; a unit is purged
//      from when its pages went back until it is taken again, and then not dirty
//  G4  nobody waits for a segment's lock on the way to an allocation: it looks at the next segment
//      instead
//  G5  a unit to which pages were moved is marked until it is mapped anew, and dirty while it is
//      free: whoever purges it finds it, and maps it anew
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "memory/region.h"

enum {
  TSL_SEGMENT_WORDS = TSL_SEGMENT_UNITS / 64,
  TSL_HUGE_STEP_UNITS = (2 << 20) / TSL_UNIT_BYTES  // a step: as many as a huge page has
};

// What the lock guards is declared at the functions of segment.c: in C a field's declaration cannot
// name another field.
struct tsl_segment {
  uint64_t free[TSL_SEGMENT_WORDS];    // [lock:segment] all in use before the segment is opened
  uint64_t dirty[TSL_SEGMENT_WORDS];   // [lock:segment]
  uint64_t purged[TSL_SEGMENT_WORDS];  // [lock:segment]
  uint64_t moved[TSL_SEGMENT_WORDS];   // [lock:segment]
  struct tsl_lock lock;                // [remote]
  uint16_t longest;                    // [lock:segment, read by any]
  uint16_t free_units;                 // [lock:segment, read by any]
  uint64_t huge;                       // [remote] a bit for each step of 2 MiB (huge.h)
} TSL_ON_LINE;

TSL_ALWAYS_INLINE struct tsl_segment *tsl_segment_at(size_t index) {
  return (struct tsl_segment *)tsl_region.segments + index;
}

// The first segment with units to take: those below hold the region's own arrays, and are never
// touched.
TSL_ALWAYS_INLINE size_t tsl_segments_first(void) {
  return tsl_region.first_unit / TSL_SEGMENT_UNITS;
}

// Where the segments end that have units.
TSL_ALWAYS_INLINE size_t tsl_segments_end(void) {
  size_t units = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  return tsl_divide_up(units, TSL_SEGMENT_UNITS);
}

// Called as the region grows: units [first, first + count) of the segment become free and
// clean.
TSL_HIDDEN void tsl_segment_open(size_t index, size_t first, size_t count);

// A run of units within a segment.
struct tsl_run {
  unsigned first, count;
};

// The next four also find nothing while another thread holds the segment's lock (G4).

// Takes `count` units at a multiple of `alignment` units from the smallest free run that holds
// them; both are at most a segment. Returns the first unit, 0 when there is no such run. `*clean`:
// all of them read as zero.
TSL_HIDDEN tsl_unit tsl_segment_take(size_t index, size_t count, size_t alignment, bool *clean);

// Takes the run when all of it is free. `*clean` becomes false when some of it was dirty.
TSL_HIDDEN bool tsl_segment_take_at(size_t index, struct tsl_run run, bool *clean);

// Takes dirty free units out of a segment, so that they can be purged without holding the lock: the
// highest ones, because requests take the lowest; `most` at most, or one huge page; all of them
// marked as moved, or none. `*held` also has their clean neighbours.
TSL_HIDDEN struct tsl_run tsl_segment_take_dirty(size_t index, size_t most, struct tsl_run *held);

// Free units at a segment's beginning and at its end; a moment's value.
struct tsl_ends {
  unsigned head, tail;
};
TSL_HIDDEN struct tsl_ends tsl_segment_ends(size_t index);

// Gives a run back that was taken; as clean only what is not marked as moved (G5).
TSL_HIDDEN void tsl_segment_give(size_t index, struct tsl_run run, bool dirty);

// Notes that the pages of a run that was taken have gone back to the system.
TSL_HIDDEN void tsl_segment_mark_purged(size_t index, struct tsl_run run);

// Marks a run that was taken: pages were moved there, or not any more.
TSL_HIDDEN void tsl_segment_mark_moved(size_t index, struct tsl_run run, bool moved);

// How many units of a run that was taken are marked so.
TSL_HIDDEN size_t tsl_segment_count_moved(size_t index, struct tsl_run run);

// Units everywhere that are marked so, in use or free; a moment's value.
TSL_HIDDEN size_t tsl_segments_moved_units(void);

// Units since the process's start: those that went back to the system, and those of them that were
// taken again.
struct tsl_unit_counts {
  size_t purged;     // [remote]
  size_t refaulted;  // [remote]
};
TSL_HIDDEN struct tsl_unit_counts tsl_units_counts(void);

// Free units everywhere, and those of them that are dirty; a moment's value.
TSL_HIDDEN size_t tsl_segments_free_units(void);
TSL_HIDDEN size_t tsl_units_dirty(void);

// The least tsl_units_dirty() since the last call of this.
TSL_HIDDEN size_t tsl_units_dirty_low(void);

// Raises that low-water mark by units that come from the unit cache: they were idle there, too.
TSL_HIDDEN void tsl_units_dirty_before(size_t units);

// In the child of a fork: takes over the locks that lost threads held, and mends what they guard.
TSL_HIDDEN void tsl_segments_after_fork(void);

TSL_HIDDEN bool tsl_segment_valid(const struct tsl_segment *segment);
