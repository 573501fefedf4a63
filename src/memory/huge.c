#include "memory/huge.h"

#include "base/bits.h"
#include "base/options.h"
#include "memory/segment.h"
#include "os/os.h"

static bool is_everywhere;  // [const]
static bool is_by_size;     // [const] option `thp` is auto

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

static void steps_mark(size_t first, size_t end, bool huge) {
  for (size_t step = first; step < end; step += TSL_HUGE_STEP_UNITS) {
    if (huge) tsl_or_relaxed(bits_of(step), bit_of(step));
    if (!huge) tsl_and_relaxed(bits_of(step), ~bit_of(step));
  }
}

// One call for all steps between those at both ends that are as they should be already.
static void steps_set(size_t first, size_t end, bool huge) {
  while (first < end && is_marked(first) == huge) first += TSL_HUGE_STEP_UNITS;
  while (first < end && is_marked(end - 1) == huge) end -= TSL_HUGE_STEP_UNITS;
  if (first >= end) return;
  steps_mark(first, end, huge);
  advise(first, end, huge);
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

void tsl_huge_suit(tsl_unit first, size_t count) {
  if (!is_by_size) return;
  size_t end = first + count;
  if (count >= TSL_HUGE_LEAST_UNITS) return steps_set(step_from(first), step_of(end), true);
  steps_set(step_of(first), step_from(end), false);
}

void tsl_huge_part(size_t first, size_t count) {
  size_t end = first + count;
  if (step_of(first) != first) steps_set(step_of(first), step_from(first), false);
  if (step_of(end) != end) steps_set(step_of(end), step_from(end), false);
}
