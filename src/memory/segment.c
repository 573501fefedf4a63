#include "memory/segment.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/probe.h"
#include "memory/mirror.h"
#include "memory/record.h"
#include "os/os.h"

// Free units.
static size_t free_units_total;  // [remote], relaxed

// Units to which pages were moved.
static size_t moved_units_total;  // [remote], relaxed

// The number of dirty units, and its minimum since tsl_units_dirty_low was called last. [remote],
// relaxed: the purge is steered by them, no invariant depends on them.
static size_t dirty_units, dirty_low;

static struct tsl_unit_counts counts;  // relaxed, as above

enum { NEIGHBOURS = 8 };

static void dirty_remove(size_t units) {
  if (units == 0) return;
  size_t left = tsl_sub_relaxed(&dirty_units, units) - units;
  if (left < tsl_load_relaxed(&dirty_low)) tsl_store_relaxed(&dirty_low, left);
}

size_t tsl_segments_free_units(void) { return tsl_load_relaxed(&free_units_total); }

size_t tsl_segments_moved_units(void) { return tsl_load_relaxed(&moved_units_total); }

size_t tsl_units_dirty(void) { return tsl_load_relaxed(&dirty_units); }

struct tsl_unit_counts tsl_units_counts(void) {
  return (struct tsl_unit_counts){tsl_load_relaxed(&counts.purged),
                                  tsl_load_relaxed(&counts.refaulted)};
}

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
static struct tsl_run run_next(const uint64_t *words, unsigned from) {
  unsigned first = bits_find(words, from, true);
  if (first == TSL_SEGMENT_UNITS) return (struct tsl_run){first, 0};
  return (struct tsl_run){first, bits_find(words, first, false) - first};
}

// One word's part of a run.
struct run_part {
  unsigned word;
  uint64_t mask;
};

// Cuts the next word's part off `rest`; false when nothing is left.
static bool run_cut(struct tsl_run *rest, struct run_part *part) {
  if (rest->count == 0) return false;
  unsigned offset = rest->first % 64, count = 64 - offset;
  if (count > rest->count) count = rest->count;
  *part = (struct run_part){rest->first / 64, tsl_low_bits(count) << offset};
  *rest = (struct tsl_run){rest->first + count, rest->count - count};
  return true;
}

static unsigned segment_find_longest(const struct tsl_segment *segment)
    TSL_REQUIRES(segment->lock) {
  unsigned longest = 0;
  for (struct tsl_run run = run_next(segment->free, 0); run.count != 0;
       run = run_next(segment->free, run.first + run.count)) {
    if (run.count > longest) longest = run.count;
  }
  return longest;
}

// G2: every change of a segment ends here, under its lock (G1).
static void segment_set(struct tsl_segment *segment, unsigned longest, unsigned free_units)
    TSL_REQUIRES(segment->lock) {
  tsl_add_relaxed(&free_units_total, (size_t)free_units - segment->free_units);
  tsl_store_relaxed(&segment->longest, (uint16_t)longest);
  tsl_store_relaxed(&segment->free_units, (uint16_t)free_units);
  tsl_invariant(tsl_segment_valid(segment));
}

// G3: the next two order their stores so that a dirty unit is never marked as clean: a fork may
// take their thread in between (segment_mend).

// Marks free units used; returns how many of them were dirty. `within` is the length of the free
// run they lie in.
static unsigned segment_use(struct tsl_segment *segment, struct tsl_run run, unsigned within)
    TSL_REQUIRES(segment->lock) {
  unsigned dirty = 0, left = segment->free_units - run.count;
  for (struct run_part part; run_cut(&run, &part);) {
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

static void segment_free(struct tsl_segment *segment, struct tsl_run run, bool dirty)
    TSL_REQUIRES(segment->lock) {
  for (struct tsl_run rest = run; rest.count != 0;) {
    struct run_part part = {0, 0};
    run_cut(&rest, &part);
    tsl_assert((segment->free[part.word] & part.mask) == 0);
    tsl_assert(dirty || (segment->moved[part.word] & part.mask) == 0);
    if (dirty) segment->dirty[part.word] |= part.mask;
    tsl_compiler_fence();  // pairs: segment-fork
    segment->free[part.word] |= part.mask;
  }
  unsigned merged =
      bits_find(segment->free, run.first, false) - bits_run_start(segment->free, run.first);
  segment_set(segment, merged > segment->longest ? merged : segment->longest,
              segment->free_units + run.count);
}

// Takes free units for an allocation; returns how many of them were dirty.
static unsigned segment_take(struct tsl_segment *segment, struct tsl_run run, unsigned within)
    TSL_REQUIRES(segment->lock) {
  unsigned again = 0;
  struct tsl_run rest = run;
  for (struct run_part part; run_cut(&rest, &part);) {
    again += tsl_bit_count(segment->purged[part.word] & part.mask);
    segment->purged[part.word] &= ~part.mask;
  }
  unsigned dirty = segment_use(segment, run, within);
  if (again != 0) tsl_add_relaxed(&counts.refaulted, again);
  return dirty;
}

void tsl_segment_open(size_t index, size_t first, size_t count) {
  struct tsl_segment *segment = tsl_segment_at(index);
  tsl_lock_acquire(&segment->lock);
  segment_free(segment, (struct tsl_run){(unsigned)first, (unsigned)count}, false);
  tsl_lock_release(&segment->lock);
}

// The smallest free run that holds `count` aligned units, and where in it they begin. One unit: the
// first run, so that the low addresses fill up.
static struct tsl_run segment_best_fit(const struct tsl_segment *segment, unsigned count,
                                       unsigned alignment, unsigned *first)
    TSL_REQUIRES(segment->lock) {
  struct tsl_run best = {0, 0};
  for (struct tsl_run run = run_next(segment->free, 0); run.count != 0;
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

void tsl_segment_give(size_t index, struct tsl_run run, bool dirty) {
  struct tsl_segment *segment = tsl_segment_at(index);
  tsl_lock_acquire(&segment->lock);
  segment_free(segment, run, dirty);
  tsl_lock_release(&segment->lock);
  if (dirty) tsl_add_relaxed(&dirty_units, run.count);
}

void tsl_segment_mark_purged(size_t index, struct tsl_run run) {
  struct tsl_segment *segment = tsl_segment_at(index);
  struct tsl_run rest = run;
  tsl_lock_acquire(&segment->lock);
  for (struct run_part part; run_cut(&rest, &part);) segment->purged[part.word] |= part.mask;
  tsl_lock_release(&segment->lock);
  tsl_add_relaxed(&counts.purged, run.count);
}

void tsl_segment_mark_moved(size_t index, struct tsl_run run, bool moved) {
  struct tsl_segment *segment = tsl_segment_at(index);
  ptrdiff_t more = 0;
  tsl_lock_acquire(&segment->lock);
  for (struct run_part part; run_cut(&run, &part);) {
    uint64_t *word = &segment->moved[part.word];
    more -= tsl_bit_count(*word & part.mask);
    *word = moved ? *word | part.mask : *word & ~part.mask;
    more += tsl_bit_count(*word & part.mask);
  }
  tsl_lock_release(&segment->lock);
  tsl_add_relaxed(&moved_units_total, (size_t)more);
}

size_t tsl_segment_count_moved(size_t index, struct tsl_run run) {
  struct tsl_segment *segment = tsl_segment_at(index);
  size_t moved = 0;
  tsl_lock_acquire(&segment->lock);
  for (struct run_part part; run_cut(&run, &part);)
    moved += tsl_bit_count(segment->moved[part.word] & part.mask);
  tsl_lock_release(&segment->lock);
  return moved;
}

// `longest` is read without the lock, which a segment without room is not worth.
tsl_unit tsl_segment_take(size_t index, size_t count, size_t alignment, bool *clean) {
  struct tsl_segment *segment = tsl_segment_at(index);
  unsigned first = 0;
  if (tsl_load_relaxed(&segment->longest) < count || !tsl_lock_try_briefly(&segment->lock))
    return 0;
  struct tsl_run run = segment_best_fit(segment, (unsigned)count, (unsigned)alignment, &first);
  unsigned dirty = run.count == 0
                       ? 0
                       : segment_take(segment, (struct tsl_run){first, (unsigned)count}, run.count);
  tsl_lock_release(&segment->lock);
  if (run.count == 0) return 0;
  dirty_remove(dirty);
  *clean = dirty == 0;
  return (tsl_unit)(index * TSL_SEGMENT_UNITS + first);
}

bool tsl_segment_take_at(size_t index, struct tsl_run run, bool *clean) {
  struct tsl_segment *segment = tsl_segment_at(index);
  if (index >= tsl_segments_end() || !tsl_lock_try_briefly(&segment->lock)) return false;
  bool fits = bits_find(segment->free, run.first, false) >= run.first + run.count;
  unsigned dirty = fits ? segment_take(segment, run, segment->longest) : 0;
  tsl_lock_release(&segment->lock);
  dirty_remove(dirty);
  *clean &= dirty == 0;
  return fits;
}

struct tsl_ends tsl_segment_ends(size_t index) {
  struct tsl_segment *segment = tsl_segment_at(index);
  struct tsl_ends ends = {0, 0};
  if (!tsl_lock_try_briefly(&segment->lock)) return ends;
  ends.head = bits_find(segment->free, 0, false);
  ends.tail = TSL_SEGMENT_UNITS - bits_run_start(segment->free, TSL_SEGMENT_UNITS);
  tsl_lock_release(&segment->lock);
  return ends;
}

// The end of the last run of ones, `most` of them at most; count 0 when there is none.
static struct tsl_run run_last(const uint64_t *words, size_t most) {
  unsigned word = TSL_SEGMENT_WORDS;
  while (word != 0 && words[word - 1] == 0) word--;
  if (word == 0) return (struct tsl_run){0, 0};
  unsigned end = (word - 1) * 64 + tsl_highest_bit(words[word - 1]) + 1;
  unsigned count = end - bits_run_start(words, end);
  if (count > most) count = (unsigned)most;
  return (struct tsl_run){end - count, count};
}

// A run does not begin within a huge page of which all is in `dirty`: it begins behind it, or with
// it where nothing would be left.
static struct tsl_run run_of_whole_pages(const struct tsl_segment *segment, struct tsl_run run)
    TSL_REQUIRES(segment->lock) {
  unsigned step = run.first - run.first % TSL_HUGE_STEP_UNITS, behind = step + TSL_HUGE_STEP_UNITS;
  unsigned end = run.first + run.count;
  bool is_huge = (tsl_load_relaxed(&segment->huge) >> step / TSL_HUGE_STEP_UNITS & 1) != 0;
  if (!is_huge || run.first == step || end < behind) return run;
  if (bits_run_start(segment->dirty, run.first) > step) return run;
  unsigned first = end > behind ? behind : step;
  return (struct tsl_run){first, end - first};
}

static bool is_moved(const struct tsl_segment *segment, unsigned unit) TSL_REQUIRES(segment->lock) {
  return (segment->moved[unit / 64] >> unit % 64 & 1) != 0;
}

// The end of a run in which all units are marked as moved, or none.
static struct tsl_run run_of_one_kind(const struct tsl_segment *segment, struct tsl_run run)
    TSL_REQUIRES(segment->lock) {
  unsigned end = run.first + run.count, first = end;
  while (first > run.first && is_moved(segment, first - 1) == is_moved(segment, end - 1)) first--;
  return (struct tsl_run){first, end - first};
}

static bool is_clean(const struct tsl_segment *segment, unsigned unit) TSL_REQUIRES(segment->lock) {
  uint64_t free = segment->free[unit / 64] & ~segment->dirty[unit / 64];
  return (free >> unit % 64 & 1) != 0;
}

// The run with the clean units on both sides of it, up to NEIGHBOURS on each.
static struct tsl_run run_widen(const struct tsl_segment *segment, struct tsl_run run)
    TSL_REQUIRES(segment->lock) {
  unsigned first = run.first, end = run.first + run.count;
  unsigned least = first < NEIGHBOURS ? 0 : first - NEIGHBOURS;
  unsigned most = end + NEIGHBOURS < TSL_SEGMENT_UNITS ? end + NEIGHBOURS : TSL_SEGMENT_UNITS;
  while (first > least && is_clean(segment, first - 1)) first--;
  while (end < most && is_clean(segment, end)) end++;
  return (struct tsl_run){first, end - first};
}

struct tsl_run tsl_segment_take_dirty(size_t index, size_t most, struct tsl_run *held) {
  struct tsl_segment *segment = tsl_segment_at(index);
  struct tsl_run run = {0, 0};
  if (!tsl_lock_try(&segment->lock)) return run;
  run = run_of_whole_pages(segment, run_last(segment->dirty, most));
  run = run_of_one_kind(segment, run);
  *held = run_widen(segment, run);
  if (run.count != 0) segment_use(segment, *held, segment->longest);
  tsl_lock_release(&segment->lock);
  dirty_remove(run.count);
  return run;
}

// `free` decides. Units that the lost thread was taking or giving back, and that are not in `free`,
// are lost.
static void segment_mend(struct tsl_segment *segment) TSL_REQUIRES(segment->lock) {
  unsigned free_units = 0;
  for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) {
    segment->dirty[w] &= segment->free[w];  // pairs: segment-fork
    segment->purged[w] &= segment->free[w] & ~segment->dirty[w];
    free_units += tsl_bit_count(segment->free[w]);
  }
  segment_set(segment, segment_find_longest(segment), free_units);
}

// The units are counted anew: threads change the counts of dirty and moved ones after they have
// released the segment's lock, and a fork may come between the two stores of the other.
void tsl_segments_after_fork(void) TSL_NOT_ANALYSED {
  size_t dirty = 0, moved = 0, free = 0;
  for (size_t i = tsl_segments_first(); i < tsl_segments_end(); i++) {
    struct tsl_segment *segment = tsl_segment_at(i);
    if (tsl_lock_take_over(&segment->lock)) segment_mend(segment);
    for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) dirty += tsl_bit_count(segment->dirty[w]);
    for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) moved += tsl_bit_count(segment->moved[w]);
    free += segment->free_units;
  }
  tsl_store_relaxed(&free_units_total, free);
  tsl_store_relaxed(&dirty_units, dirty);
  tsl_store_relaxed(&dirty_low, dirty);
  tsl_store_relaxed(&moved_units_total, moved);
}

bool tsl_segment_valid(const struct tsl_segment *segment) {
  unsigned free_units = 0, longest = 0, current = 0;
  for (unsigned i = 0; i < TSL_SEGMENT_UNITS; i++) {
    bool free = segment->free[i / 64] >> (i % 64) & 1;
    current = free ? current + 1 : 0;
    free_units += free;
    if (current > longest) longest = current;
    if (!free && (segment->dirty[i / 64] >> (i % 64) & 1)) return false;
    if ((segment->dirty[i / 64] & segment->purged[i / 64]) >> (i % 64) & 1) return false;
    if (free && ((segment->moved[i / 64] & ~segment->dirty[i / 64]) >> (i % 64) & 1)) return false;
  }
  return free_units == segment->free_units && longest == segment->longest;
}
