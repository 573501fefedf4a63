#include "memory/segment.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/probe.h"
#include "memory/mirror.h"
#include "memory/record.h"
#include "os/os.h"

// The dirty units and the least of them since somebody asked. [remote], relaxed: they steer, they
// do not decide.
static size_t dirty_units, dirty_low;

// No segment below this one had a free unit when somebody last looked. [remote], relaxed: a hint.
static size_t search_from;

// Runs longer than this may lie across two segments.
enum { ACROSS_UNITS = TSL_SEGMENT_UNITS / 4, NEIGHBOURS = 8 };

struct run {
  unsigned first, count;
};

static void dirty_remove(size_t units) {
  if (units == 0) return;
  size_t left = tsl_sub_relaxed(&dirty_units, units) - units;
  if (left < tsl_load_relaxed(&dirty_low)) tsl_store_relaxed(&dirty_low, left);
}

size_t tsl_units_dirty(void) { return tsl_load_relaxed(&dirty_units); }

size_t tsl_units_dirty_low(void) {
  return tsl_exchange_relaxed(&dirty_low, tsl_load_relaxed(&dirty_units));
}

void tsl_units_dirty_before(size_t units) { tsl_add_relaxed(&dirty_low, units); }

// First bit at or after `from` whose value is `value`; TSL_SEGMENT_UNITS when there is none.
static unsigned bits_find(const uint64_t *words, unsigned from, bool value) {
  uint64_t flip = value ? 0 : ~UINT64_C(0);
  for (; from < TSL_SEGMENT_UNITS; from = (from & ~63u) + 64) {
    uint64_t word = (words[from / 64] ^ flip) & ~UINT64_C(0) << (from % 64);
    if (word != 0) return (from & ~63u) + tsl_lowest_bit(word);
  }
  return TSL_SEGMENT_UNITS;
}

// Where the run of ones begins that ends before `end`.
static unsigned bits_run_start(const uint64_t *words, unsigned end) {
  while (end != 0) {
    unsigned word = (end - 1) / 64, bit = (end - 1) % 64;
    uint64_t zeros = ~words[word] & tsl_low_bits(bit + 1);
    if (zeros != 0) return word * 64 + tsl_highest_bit(zeros) + 1;
    end = word * 64;
  }
  return 0;
}

// The next run of ones at or after `from`; count 0 when there is none.
static struct run run_next(const uint64_t *words, unsigned from) {
  unsigned first = bits_find(words, from, true);
  if (first == TSL_SEGMENT_UNITS) return (struct run){first, 0};
  return (struct run){first, bits_find(words, first, false) - first};
}

// One word's part of a run.
struct part {
  unsigned word;
  uint64_t mask;
};

// Cuts the next word's part off `rest`; false when nothing is left.
static bool run_cut(struct run *rest, struct part *part) {
  if (rest->count == 0) return false;
  unsigned offset = rest->first % 64, count = 64 - offset;
  if (count > rest->count) count = rest->count;
  *part = (struct part){rest->first / 64, tsl_low_bits(count) << offset};
  *rest = (struct run){rest->first + count, rest->count - count};
  return true;
}

static unsigned segment_find_longest(const struct tsl_segment *segment) {
  unsigned longest = 0;
  for (struct run run = run_next(segment->free, 0); run.count != 0;
       run = run_next(segment->free, run.first + run.count)) {
    if (run.count > longest) longest = run.count;
  }
  return longest;
}

static void segment_set(struct tsl_segment *segment, unsigned longest, unsigned free_units) {
  tsl_store_relaxed(&segment->longest, (uint16_t)longest);
  tsl_store_relaxed(&segment->free_units, (uint16_t)free_units);
  tsl_invariant(tsl_segment_valid(segment));
}

// The next two write what a unit is in an order that never calls a dirty unit clean: a fork may
// take their thread (segment_mend).

// Marks free units used; returns how many of them were dirty. `within` is the length of the free
// run they lie in.
static unsigned segment_use(struct tsl_segment *segment, struct run run, unsigned within) {
  unsigned dirty = 0, left = segment->free_units - run.count;
  for (struct part part; run_cut(&run, &part);) {
    tsl_assert((~segment->free[part.word] & part.mask) == 0);
    dirty += tsl_bit_count(segment->dirty[part.word] & part.mask);
    segment->free[part.word] &= ~part.mask;
    tsl_compiler_fence();  // pairs: segment-fork
    segment->dirty[part.word] &= ~part.mask;
  }
  bool shrunk = within == segment->longest;
  segment_set(segment, shrunk ? segment_find_longest(segment) : segment->longest, left);
  return dirty;
}

static void segment_free(struct tsl_segment *segment, struct run run, bool dirty) {
  for (struct run rest = run; rest.count != 0;) {
    struct part part = {0, 0};
    run_cut(&rest, &part);
    tsl_assert((segment->free[part.word] & part.mask) == 0);
    if (dirty) segment->dirty[part.word] |= part.mask;
    tsl_compiler_fence();  // pairs: segment-fork
    segment->free[part.word] |= part.mask;
  }
  unsigned merged =
      bits_find(segment->free, run.first, false) - bits_run_start(segment->free, run.first);
  segment_set(segment, merged > segment->longest ? merged : segment->longest,
              segment->free_units + run.count);
}

void tsl_segment_open(size_t index, size_t first, size_t count) {
  struct tsl_segment *segment = tsl_segment_at(index);
  tsl_lock_acquire(&segment->lock);
  segment_free(segment, (struct run){(unsigned)first, (unsigned)count}, false);
  tsl_lock_release(&segment->lock);
}

// The smallest free run that holds `count` aligned units, and where in it they begin. One unit: the
// first run, so that the low addresses fill up.
static struct run segment_best_fit(const struct tsl_segment *segment, unsigned count,
                                   unsigned alignment, unsigned *first) {
  struct run best = {0, 0};
  for (struct run run = run_next(segment->free, 0); run.count != 0;
       run = run_next(segment->free, run.first + run.count)) {
    unsigned start = (run.first + alignment - 1) & ~(alignment - 1);
    bool fits = start + count <= run.first + run.count;
    if (!fits || (best.count != 0 && run.count >= best.count)) continue;
    best = run;
    *first = start;
    if (count == 1) break;
  }
  return best;
}

static void segment_give(size_t index, struct run run, bool dirty) {
  struct tsl_segment *segment = tsl_segment_at(index);
  tsl_lock_acquire(&segment->lock);
  segment_free(segment, run, dirty);
  tsl_lock_release(&segment->lock);
  if (dirty) tsl_add_relaxed(&dirty_units, run.count);
  if (index < tsl_load_relaxed(&search_from)) tsl_store_relaxed(&search_from, index);
}

// The part of the units [first, first + count) that lies in the first one's segment.
static struct run run_in_segment(size_t first, size_t count) {
  unsigned offset = (unsigned)(first % TSL_SEGMENT_UNITS);
  size_t room = TSL_SEGMENT_UNITS - offset;
  return (struct run){offset, (unsigned)(count < room ? count : room)};
}

static void units_give(size_t first, size_t count, bool dirty) {
  while (count != 0) {
    struct run run = run_in_segment(first, count);
    segment_give(first / TSL_SEGMENT_UNITS, run, dirty);
    first += run.count;
    count -= run.count;
  }
}

void tsl_units_give(tsl_unit first, size_t count) { units_give(first, count, true); }

// Those below hold the region's own arrays, and are never touched.
static size_t first_segment(void) { return tsl_region.first_unit / TSL_SEGMENT_UNITS; }

static size_t segments_open(void) {
  size_t units = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  return tsl_divide_up(units, TSL_SEGMENT_UNITS);
}

static tsl_unit segment_take(size_t index, size_t count, size_t alignment, bool *clean) {
  struct tsl_segment *segment = tsl_segment_at(index);
  unsigned first = 0;
  if (tsl_load_relaxed(&segment->longest) < count || !tsl_lock_try_briefly(&segment->lock))
    return 0;
  struct run run = segment_best_fit(segment, (unsigned)count, (unsigned)alignment, &first);
  unsigned dirty =
      run.count == 0 ? 0 : segment_use(segment, (struct run){first, (unsigned)count}, run.count);
  tsl_lock_release(&segment->lock);
  if (run.count == 0) return 0;
  dirty_remove(dirty);
  *clean = dirty == 0;
  return (tsl_unit)(index * TSL_SEGMENT_UNITS + first);
}

// Takes one whole free segment.
static bool segment_take_whole(size_t index, bool *clean) {
  bool this_clean = true;
  if (tsl_load_relaxed(&tsl_segment_at(index)->longest) != TSL_SEGMENT_UNITS) return false;
  if (segment_take(index, TSL_SEGMENT_UNITS, 1, &this_clean) == 0) return false;
  *clean &= this_clean;
  return true;
}

static bool segment_take_at(size_t index, struct run run, bool *clean) {
  struct tsl_segment *segment = tsl_segment_at(index);
  if (index >= segments_open() || !tsl_lock_try_briefly(&segment->lock)) return false;
  bool fits = bits_find(segment->free, run.first, false) >= run.first + run.count;
  unsigned dirty = fits ? segment_use(segment, run, segment->longest) : 0;
  tsl_lock_release(&segment->lock);
  dirty_remove(dirty);
  *clean &= dirty == 0;
  return fits;
}

bool tsl_units_take_at(tsl_unit first, size_t count, bool *clean) {
  *clean = true;
  for (size_t taken = 0; taken < count;) {
    struct run run = run_in_segment(first + taken, count - taken);
    if (!segment_take_at((first + taken) / TSL_SEGMENT_UNITS, run, clean)) {
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
  size_t open = segments_open();
  size_t first = tsl_round_up(first_segment(), alignment);
  while (first + count <= open) {
    size_t taken = segments_take(first, count, clean);
    if (taken == count) return (tsl_unit)(first * TSL_SEGMENT_UNITS);
    units_give(first * TSL_SEGMENT_UNITS, taken * TSL_SEGMENT_UNITS, !*clean);
    first = tsl_round_up(first + taken + 1, alignment);
  }
  return 0;
}

// Opens what is missing for `count` whole segments behind all others.
static bool segments_grow(size_t count, size_t alignment, size_t block_units) {
  size_t open = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  if (open < tsl_region.first_unit) open = tsl_region.first_unit;
  size_t first = tsl_round_up(tsl_divide_up(open, TSL_SEGMENT_UNITS), alignment);
  size_t end = (first + count) * TSL_SEGMENT_UNITS;
  return end <= tsl_region.limit_units && tsl_region_grow_for(end - open, block_units);
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
    if (found != 0 || !segments_grow(count, segment_alignment, units)) return found;
  }
}

// Free units at a segment's beginning and at its end; a moment's value.
struct ends {
  unsigned head, tail;
};

static struct ends segment_ends(size_t index) {
  struct tsl_segment *segment = tsl_segment_at(index);
  struct ends ends = {0, 0};
  if (!tsl_lock_try_briefly(&segment->lock)) return ends;
  ends.head = bits_find(segment->free, 0, false);
  ends.tail = TSL_SEGMENT_UNITS - bits_run_start(segment->free, TSL_SEGMENT_UNITS);
  tsl_lock_release(&segment->lock);
  return ends;
}

// Units that begin in one segment and end in the next.
static tsl_unit segments_take_across(size_t count, bool *clean) {
  for (size_t i = first_segment(); i + 1 < segments_open(); i++) {
    size_t tail = segment_ends(i).tail;
    if (tail == 0 || tail + segment_ends(i + 1).head < count) continue;
    tsl_unit first = (tsl_unit)((i + 1) * TSL_SEGMENT_UNITS - tail);
    if (tsl_units_take_at(first, count, clean)) return first;
  }
  return 0;
}

// Looks through the segments [*index, end); `*full` tells whether none before the one taken from
// had a free unit.
static tsl_unit segments_search(size_t *index, size_t count, size_t alignment, bool *clean,
                                bool *full) {
  for (; *index < segments_open(); ++*index) {
    tsl_unit found = segment_take(*index, count, alignment, clean);
    if (found != 0) return found;
    *full &= tsl_load_relaxed(&tsl_segment_at(*index)->longest) == 0;
  }
  return 0;
}

tsl_unit tsl_units_take(size_t count, size_t alignment, bool *clean) {
  if (count > TSL_SEGMENT_UNITS || alignment > TSL_SEGMENT_UNITS) {
    return segments_take_run(count, alignment, clean);
  }
  size_t first = first_segment(), index = tsl_load_relaxed(&search_from);
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

// The end of the last run of ones, `most` of them at most; count 0 when there is none.
static struct run run_last(const uint64_t *words, size_t most) {
  unsigned word = TSL_SEGMENT_WORDS;
  while (word != 0 && words[word - 1] == 0) word--;
  if (word == 0) return (struct run){0, 0};
  unsigned end = (word - 1) * 64 + tsl_highest_bit(words[word - 1]) + 1;
  unsigned count = end - bits_run_start(words, end);
  if (count > most) count = (unsigned)most;
  return (struct run){end - count, count};
}

static bool is_clean(const struct tsl_segment *segment, unsigned unit) {
  uint64_t free = segment->free[unit / 64] & ~segment->dirty[unit / 64];
  return (free >> unit % 64 & 1) != 0;
}

// The run with the clean units on both sides of it, up to NEIGHBOURS on each.
static struct run run_widen(const struct tsl_segment *segment, struct run run) {
  unsigned first = run.first, end = run.first + run.count;
  unsigned least = first < NEIGHBOURS ? 0 : first - NEIGHBOURS;
  unsigned most = end + NEIGHBOURS < TSL_SEGMENT_UNITS ? end + NEIGHBOURS : TSL_SEGMENT_UNITS;
  while (first > least && is_clean(segment, first - 1)) first--;
  while (end < most && is_clean(segment, end)) end++;
  return (struct run){first, end - first};
}

// Takes dirty free units out of a segment, so that they can be purged without holding the lock: the
// highest ones, because requests take the lowest. `*held` also has their clean neighbours.
static struct run segment_take_dirty(struct tsl_segment *segment, size_t most, struct run *held) {
  struct run run = {0, 0};
  if (!tsl_lock_try(&segment->lock)) return run;
  run = run_last(segment->dirty, most);
  *held = run_widen(segment, run);
  if (run.count != 0) segment_use(segment, *held, segment->longest);
  tsl_lock_release(&segment->lock);
  dirty_remove(run.count);
  return run;
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
}

// The neighbours stay clean.
static void segment_give_held(size_t index, struct run held, struct run run, bool dirty) {
  unsigned end = run.first + run.count;
  struct run before = {held.first, run.first - held.first};
  struct run after = {end, held.first + held.count - end};
  segment_give(index, run, dirty);
  if (before.count != 0) segment_give(index, before, false);
  if (after.count != 0) segment_give(index, after, false);
}

size_t tsl_units_purge(size_t *cursor, size_t most) {
  size_t first = first_segment(), count = segments_open() - first;
  for (size_t tried = 0; tried < count; tried++) {
    size_t index = first + *cursor % count;
    struct run held = {0, 0}, run = segment_take_dirty(tsl_segment_at(index), most, &held);
    if (run.count != 0) {
      size_t base = index * TSL_SEGMENT_UNITS, held_first = base + held.first;
      uintptr_t start = tsl_unit_address(base + run.first);
      bool purged = tsl_os_purge((void *)start, (size_t)run.count << TSL_UNIT_LOG2);
      tsl_add_relaxed(purged ? &tsl_counts.purges : &tsl_counts.purges_refused, 1);
      if (purged) tsl_add_relaxed(&tsl_counts.purged_bytes, run.count << TSL_UNIT_LOG2);
      TSL_PROBE2(purge, start, purged ? (size_t)run.count << TSL_UNIT_LOG2 : 0);
      if (purged) discard_records(held_first, held_first + held.count);
      segment_give_held(index, held, run, !purged);
      return purged ? run.count : 0;
    }
    *cursor = (*cursor + 1) % count;
  }
  return 0;
}

size_t tsl_units_open(void) {
  size_t units = tsl_load_relaxed(&tsl_region.units);
  return units == 0 ? 0 : units - tsl_region.first_unit - tsl_load_relaxed(&tsl_region.hole_units);
}

size_t tsl_units_free(void) {
  size_t free = 0;
  for (size_t i = first_segment(); i < segments_open(); i++)
    free += tsl_load_relaxed(&tsl_segment_at(i)->free_units);
  return free;
}

// What `free` says is true; units on their way to it or from it are nobody's for ever.
static void segment_mend(struct tsl_segment *segment) {
  unsigned free_units = 0;
  for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) {
    segment->dirty[w] &= segment->free[w];  // pairs: segment-fork
    free_units += tsl_bit_count(segment->free[w]);
  }
  segment_set(segment, segment_find_longest(segment), free_units);
}

// The count of all dirty units changes after a segment's lock is released.
void tsl_segments_after_fork(void) {
  size_t dirty = 0;
  for (size_t i = first_segment(); i < segments_open(); i++) {
    struct tsl_segment *segment = tsl_segment_at(i);
    if (tsl_lock_take_over(&segment->lock)) segment_mend(segment);
    for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) dirty += tsl_bit_count(segment->dirty[w]);
  }
  tsl_store_relaxed(&dirty_units, dirty);
  tsl_store_relaxed(&dirty_low, dirty);
}

bool tsl_segment_valid(const struct tsl_segment *segment) {
  unsigned free_units = 0, longest = 0, current = 0;
  for (unsigned i = 0; i < TSL_SEGMENT_UNITS; i++) {
    bool free = segment->free[i / 64] >> (i % 64) & 1;
    current = free ? current + 1 : 0;
    free_units += free;
    if (current > longest) longest = current;
    if (!free && (segment->dirty[i / 64] >> (i % 64) & 1)) return false;
  }
  return free_units == segment->free_units && longest == segment->longest;
}
