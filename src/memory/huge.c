#include "memory/huge.h"

#include "base/bits.h"
#include "base/options.h"
#include "memory/segment.h"
#include "os/os.h"

static bool is_everywhere;  // [const]
static bool is_by_size;     // [const] option `thp` is auto
static size_t runs;         // [remote] of marks

size_t tsl_huge_most_runs = 8192;

_Static_assert(TSL_SEGMENT_UNITS / TSL_HUGE_STEP_UNITS == 64, "a bit for each step");

void tsl_huge_init(void) {
  is_everywhere = tsl_option(thp) == TSL_THP_ALWAYS;
  is_by_size = tsl_option(thp) == TSL_THP_AUTO;
}

bool tsl_huge_is_everywhere(void) { return is_everywhere; }

static size_t step_of(size_t unit) { return tsl_round_down(unit, TSL_HUGE_STEP_UNITS); }
static size_t step_from(size_t unit) { return tsl_round_up(unit, TSL_HUGE_STEP_UNITS); }

static uint64_t *bits_of(size_t unit) { return &tsl_segment_at(unit / TSL_SEGMENT_UNITS)->huge; }

static uint64_t bit_of(size_t unit) {
  return UINT64_C(1) << unit % TSL_SEGMENT_UNITS / TSL_HUGE_STEP_UNITS;
}

static bool is_marked(size_t unit) { return (tsl_load_relaxed(bits_of(unit)) & bit_of(unit)) != 0; }

bool tsl_huge_at(size_t unit) { return is_everywhere || is_marked(unit); }

static void advise(size_t first, size_t end, bool huge) {
  tsl_os_advise_huge((void *)tsl_unit_address(first), (end - first) << TSL_UNIT_LOG2, huge);
}

// Of marks in one segment: a run that goes on in the next one counts twice.
static size_t runs_of(uint64_t bits) { return tsl_bit_count(bits & ~(bits << 1)); }

static void step_mark(size_t step, bool huge) {
  uint64_t *bits = bits_of(step), bit = bit_of(step);
  uint64_t before = huge ? tsl_or_relaxed(bits, bit) : tsl_and_relaxed(bits, ~bit);
  tsl_add_relaxed(&runs, runs_of(huge ? before | bit : before & ~bit) - runs_of(before));
}

static void steps_mark(size_t first, size_t end, bool huge) {
  for (size_t step = first; step < end; step += TSL_HUGE_STEP_UNITS) step_mark(step, huge);
}

// One call for all steps between those at both ends that are as they should be already. A mark lies
// wherever the system may make a huge page: whoever finds none relies on it.
static void steps_set(size_t first, size_t end, bool huge) {
  while (first < end && is_marked(first) == huge) first += TSL_HUGE_STEP_UNITS;
  while (first < end && is_marked(end - 1) == huge) end -= TSL_HUGE_STEP_UNITS;
  if (first >= end) return;
  if (huge) steps_mark(first, end, true);
  advise(first, end, huge);
  if (!huge) steps_mark(first, end, false);
}

void tsl_huge_renew(size_t first, size_t end) {
  for (size_t at = first, next; at < end; at = next) {
    bool huge = tsl_huge_at(at);
    next = step_of(at) + TSL_HUGE_STEP_UNITS;
    while (next < end && tsl_huge_at(next) == huge) next += TSL_HUGE_STEP_UNITS;
    next = tsl_at_most(next, end);
    advise(at, next, huge);
  }
}

void tsl_huge_end(size_t first, size_t count) {
  steps_set(step_of(first), step_from(first + count), false);
}

void tsl_huge_part(size_t first, size_t count) {
  size_t end = first + count;
  if (step_of(first) != first) tsl_huge_end(first, 1);
  if (step_of(end) != end) tsl_huge_end(end, 1);
}

void tsl_huge_suit(tsl_unit first, size_t count) {
  if (!is_by_size) return;
  if (count < TSL_HUGE_LEAST_UNITS) return tsl_huge_end(first, count);
  tsl_huge_part(first, count);
  if (tsl_load_relaxed(&runs) < tsl_huge_most_runs)
    steps_set(step_from(first), step_of(first + count), true);
}
