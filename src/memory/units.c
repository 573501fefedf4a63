#include "memory/units.h"

#include "base/bits.h"
#include "base/probe.h"
#include "memory/growth.h"
#include "memory/huge.h"
#include "memory/mirror.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "os/os.h"

// No segment below this one had a free unit when somebody last looked. [remote], relaxed: a hint.
static size_t search_from;

// Runs longer than this may lie across two segments.
enum { ACROSS_UNITS = TSL_SEGMENT_UNITS / 4 };

// So many units may be marked as moved. Each may cost a mapping, of the 65,530 that a process may
// have (decision 015).
enum { MOST_MOVED_UNITS = 4096 };

static void run_give(size_t index, struct tsl_run run, bool dirty) {
  tsl_segment_give(index, run, dirty);
  if (index < tsl_load_relaxed(&search_from)) tsl_store_relaxed(&search_from, index);
}

// The part of the units [first, first + count) that lies in the first one's segment.
static struct tsl_run run_in_segment(size_t first, size_t count) {
  unsigned offset = (unsigned)(first % TSL_SEGMENT_UNITS);
  size_t room = TSL_SEGMENT_UNITS - offset;
  return (struct tsl_run){offset, (unsigned)(count < room ? count : room)};
}

static void units_give(size_t first, size_t count, bool dirty) {
  while (count != 0) {
    struct tsl_run run = run_in_segment(first, count);
    run_give(first / TSL_SEGMENT_UNITS, run, dirty);
    first += run.count;
    count -= run.count;
  }
}

// R2: whoever had them has forgotten them.
static bool units_are_nobodys(size_t first, size_t count) {
  for (size_t unit = first; unit < first + count; unit++)
    if (tsl_load_relaxed(tsl_map_entry(unit)) != 0) return false;
  return true;
}

void tsl_units_give(tsl_unit first, size_t count) {
  tsl_invariant(units_are_nobodys(first, count));
  units_give(first, count, true);
}

void tsl_units_give_clean(tsl_unit first, size_t count) {
  tsl_invariant(units_are_nobodys(first, count));
  units_give(first, count, false);
}

static void units_mark_moved(size_t first, size_t count, bool moved) {
  while (count != 0) {
    struct tsl_run run = run_in_segment(first, count);
    tsl_segment_mark_moved(first / TSL_SEGMENT_UNITS, run, moved);
    first += run.count;
    count -= run.count;
  }
}

size_t tsl_units_count_moved(tsl_unit first, size_t count) {
  size_t moved = 0;
  for (size_t at = first, end = at + count; at < end;) {
    struct tsl_run run = run_in_segment(at, end - at);
    moved += tsl_segment_count_moved(at / TSL_SEGMENT_UNITS, run);
    at += run.count;
  }
  return moved;
}

bool tsl_units_renew(tsl_unit first, size_t count) {
  bool renewed = tsl_region_renew(first, count);
  units_mark_moved(first, count, false);
  return renewed;
}

void tsl_units_give_moved(tsl_unit first, size_t count) {
  if (!TSL_SECURE && tsl_segments_moved_units() + count <= MOST_MOVED_UNITS) {
    units_mark_moved(first, count, true);
    tsl_units_give(first, count);
  } else if (tsl_units_renew(first, count)) {
    tsl_units_give_clean(first, count);
  }
}

// Takes one whole free segment.
static bool segment_take_whole(size_t index, bool *clean) {
  bool this_clean = true;
  if (tsl_load_relaxed(&tsl_segment_at(index)->longest) != TSL_SEGMENT_UNITS) return false;
  if (tsl_segment_take(index, TSL_SEGMENT_UNITS, 1, &this_clean) == 0) return false;
  *clean &= this_clean;
  return true;
}

bool tsl_units_take_at(tsl_unit first, size_t count, bool *clean) {
  *clean = true;
  for (size_t taken = 0; taken < count;) {
    struct tsl_run run = run_in_segment(first + taken, count - taken);
    if (!tsl_segment_take_at((first + taken) / TSL_SEGMENT_UNITS, run, clean)) {
      units_give(first, taken, !*clean);
      return false;
    }
    taken += run.count;
  }
  return true;
}

// Takes `count` whole neighbouring segments from `first` on; returns how many it got before one was
// missing.
static size_t segments_take(size_t first, size_t count, bool *clean) {
  size_t taken = 0;
  *clean = true;
  while (taken < count && segment_take_whole(first + taken, clean)) taken++;
  return taken;
}

static tsl_unit segments_find(size_t count, size_t alignment, bool *clean) {
  size_t open = tsl_segments_end();
  size_t first = tsl_round_up(tsl_segments_first(), alignment);
  while (first + count <= open) {
    size_t taken = segments_take(first, count, clean);
    if (taken == count) return (tsl_unit)(first * TSL_SEGMENT_UNITS);
    units_give(first * TSL_SEGMENT_UNITS, taken * TSL_SEGMENT_UNITS, !*clean);
    first = tsl_round_up(first + taken + 1, alignment);
  }
  return 0;
}

// Opens what is missing for `count` whole segments behind all others.
static bool segments_grow(size_t count, size_t alignment) {
  size_t open = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  if (open < tsl_region.first_unit) open = tsl_region.first_unit;
  size_t first = tsl_round_up(tsl_divide_up(open, TSL_SEGMENT_UNITS), alignment);
  size_t end = (first + count) * TSL_SEGMENT_UNITS;
  return end <= tsl_region.limit_units && tsl_region_grow(end - open);
}

// Aligned addresses need aligned segment numbers: R1 makes base a multiple of every alignment up to
// the span.
static tsl_unit segments_take_run(size_t units, size_t alignment, bool *clean) {
  size_t count = tsl_divide_up(units, TSL_SEGMENT_UNITS);
  size_t segment_alignment = tsl_divide_up(alignment, TSL_SEGMENT_UNITS);
  if (count > tsl_region.limit_units / TSL_SEGMENT_UNITS) return 0;
  for (;;) {
    tsl_unit found = segments_find(count, segment_alignment, clean);
    if (found != 0) units_give(found + units, count * TSL_SEGMENT_UNITS - units, !*clean);
    if (found != 0 || !segments_grow(count, segment_alignment)) return found;
  }
}

// Units that begin in one segment and end in the next.
static tsl_unit segments_take_across(size_t count, bool *clean) {
  for (size_t i = tsl_segments_first(); i + 1 < tsl_segments_end(); i++) {
    size_t tail = tsl_segment_ends(i).tail;
    if (tail == 0 || tail + tsl_segment_ends(i + 1).head < count) continue;
    tsl_unit first = (tsl_unit)((i + 1) * TSL_SEGMENT_UNITS - tail);
    if (tsl_units_take_at(first, count, clean)) return first;
  }
  return 0;
}

// Looks through the segments [*index, end); `*full` tells whether none before the one taken from
// had a free unit.
static tsl_unit segments_search(size_t *index, size_t count, size_t alignment, bool *clean,
                                bool *full) {
  for (; *index < tsl_segments_end(); ++*index) {
    tsl_unit found = tsl_segment_take(*index, count, alignment, clean);
    if (found != 0) return found;
    *full &= tsl_load_relaxed(&tsl_segment_at(*index)->longest) == 0;
  }
  return 0;
}

static tsl_unit units_find(size_t count, size_t alignment, bool *clean) {
  if (count > TSL_SEGMENT_UNITS || alignment > TSL_SEGMENT_UNITS) {
    return segments_take_run(count, alignment, clean);
  }
  size_t first = tsl_segments_first(), index = tsl_load_relaxed(&search_from);
  bool full = true;
  if (index < first) index = first;
  tsl_unit found = segments_search(&index, count, alignment, clean, &full);
  if (found != 0 && full) tsl_store_relaxed(&search_from, index);
  if (found != 0) return found;
  index = first;
  do {
    found = segments_search(&index, count, alignment, clean, &full);
    if (found == 0 && count > ACROSS_UNITS && alignment == 1)
      found = segments_take_across(count, clean);
    if (index != first) index--;  // growth makes the last segment longer
  } while (found == 0 && tsl_region_grow(count));
  return found;
}

tsl_unit tsl_units_take(size_t count, size_t alignment, bool *clean) {
  tsl_unit found = units_find(count, alignment, clean);
  if (found != 0) tsl_huge_suit(found, count);
  return found;
}

// Gives back the whole pages of [from, to).
static void discard_within(uintptr_t from, uintptr_t to) {
  from = tsl_round_up(from, tsl_os_page_bytes());
  to = tsl_round_down(to, tsl_os_page_bytes());
  if (from < to) tsl_os_discard((void *)from, to - from);
}

static void discard_elements(uintptr_t array, size_t bytes, size_t first, size_t end) {
  discard_within(array + first * bytes, array + end * bytes);
}

// What only tells of units [first, end), of which nobody has one.
static void discard_records(size_t first, size_t end) {
  uintptr_t granules = (uintptr_t)tsl_granule_at(tsl_unit_address(first));
  discard_elements(tsl_region.records, TSL_RECORD_BYTES, first, end);
  discard_elements(tsl_region.cells, TSL_CELLS_BYTES, first, end);
  discard_within(granules, granules + (end - first) * TSL_GRANULES_BYTES);
  if (tsl_load_acquire(&tsl_region.has_kept) == 0) return;  // pairs: region-kept
  uintptr_t kept = tsl_region.kept + (tsl_unit_address(first) >> TSL_KEPT_LOG2);
  discard_within(kept, kept + (end - first) * TSL_KEPT_BYTES);
}

// Gives back the clean neighbours of a run.
static void neighbours_give(size_t index, struct tsl_run held, struct tsl_run run) {
  unsigned end = run.first + run.count;
  struct tsl_run before = {held.first, run.first - held.first};
  struct tsl_run after = {end, held.first + held.count - end};
  if (before.count != 0) run_give(index, before, false);
  if (after.count != 0) run_give(index, after, false);
}

// Purges a run of units that are taken meanwhile: nobody gets one whose pages are about to go. So
// are their clean neighbours, since a page of records tells of several units. False when the system
// refused; what could not be mapped anew is not given back then.
static bool held_purge(size_t index, struct tsl_run held, struct tsl_run run) {
  size_t base = index * TSL_SEGMENT_UNITS, bytes = (size_t)run.count << TSL_UNIT_LOG2;
  tsl_unit first = (tsl_unit)(base + run.first);
  uintptr_t start = tsl_unit_address(first);
  bool moved = tsl_segment_count_moved(index, run) != 0;
  tsl_huge_part(first, run.count);
  bool purged = moved ? tsl_units_renew(first, run.count) : tsl_os_purge((void *)start, bytes);
  tsl_add_relaxed(purged ? &tsl_counts.purges : &tsl_counts.purges_refused, 1);
  if (purged) tsl_add_relaxed(&tsl_counts.purged_bytes, bytes);
  TSL_PROBE2(purge, start, purged ? bytes : 0);
  if (purged) tsl_segment_mark_purged(index, run);
  if (purged) discard_records(base + held.first, base + held.first + held.count);
  if (purged || !moved) run_give(index, run, !purged);
  neighbours_give(index, held, run);
  return purged;
}

// After a refusal the next call begins elsewhere.
size_t tsl_units_purge(size_t *cursor, size_t most) {
  size_t first = tsl_segments_first(), count = tsl_segments_end() - first;
  for (size_t tried = 0; tried < count; tried++) {
    size_t index = first + *cursor % count;
    struct tsl_run held = {0, 0}, run = tsl_segment_take_dirty(index, most, &held);
    bool purged = run.count != 0 && held_purge(index, held, run);
    if (purged) return run.count;
    *cursor = (*cursor + 1) % count;
    if (run.count != 0) return 0;
  }
  return 0;
}

size_t tsl_units_open(void) {
  size_t units = tsl_load_relaxed(&tsl_region.units);
  return units == 0 ? 0 : units - tsl_region.first_unit - tsl_load_relaxed(&tsl_region.hole_units);
}

size_t tsl_units_free(void) { return tsl_segments_free_units(); }
