#include "memory/unit_cache.h"

#include "memory/growth.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "os_fake.h"
#include "state.h"
#include "threads.h"

enum { UNITS = 24, ROUNDS = 10000 };

static tsl_unit first;

// Units of our own, as a heap would have them.
static void open_units(void) {
  bool clean;
  os_fake.limit_bytes = (size_t)1 << 26;
  CHECK(tsl_region_init());
  first = tsl_units_take(UNITS, 1, &clean);
  CHECK(first != 0);
}

static void give_all(void) {
  for (unsigned i = 0; i < UNITS; i++) tsl_unit_cache_give(first + i);
}

static void empty_cache(void) {
  CHECK_EQ(tsl_unit_cache_take(), 0);
  CHECK_EQ(tsl_unit_cache_units(), 0);
  CHECK_EQ(tsl_unit_cache_drain(10), 0);
}

static void last_given_is_taken_first(void) {
  open_units();
  give_all();
  CHECK_EQ(tsl_unit_cache_units(), UNITS);
  for (unsigned i = UNITS; i != 0; i--) {
    CHECK_EQ(tsl_unit_cache_take(), first + i - 1);
    CHECK_EQ(tsl_unit_cache_units(), i - 1);
  }
  CHECK_EQ(tsl_unit_cache_take(), 0);
  CHECK_EQ(tsl_unit_cache_units(), 0);
}

// A cached unit is used for the segments: nobody else takes or purges it.
static void drained_units_are_free_and_dirty(void) {
  size_t cursor = 0;
  open_units();
  give_all();
  size_t free = tsl_units_free();
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(tsl_unit_cache_drain(5), 5);
  CHECK_EQ(tsl_units_free(), free + 5);
  CHECK_EQ(tsl_units_dirty(), 5);
  CHECK_EQ(tsl_unit_cache_drain(SIZE_MAX), UNITS - 5);
  CHECK_EQ(tsl_unit_cache_units(), 0);
  CHECK_EQ(tsl_units_dirty(), UNITS);
  CHECK_EQ(tsl_units_purge(&cursor, SIZE_MAX), UNITS);
  state_check();
}

static void least_units_since_asked(void) {
  open_units();
  CHECK_EQ(tsl_unit_cache_low(), 0);
  give_all();
  CHECK_EQ(tsl_unit_cache_low(), 0);
  CHECK_EQ(tsl_unit_cache_low(), UNITS);
  for (int i = 0; i < 7; i++) tsl_unit_cache_take();
  for (unsigned i = UNITS - 7; i < UNITS; i++) tsl_unit_cache_give(first + i);
  CHECK_EQ(tsl_unit_cache_low(), UNITS - 7);
  CHECK_EQ(tsl_unit_cache_low(), UNITS);
}

// Each thread writes into the units it took: two holders would be seen.
static void *take_and_give(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    tsl_unit unit = tsl_unit_cache_take();
    if (unit == 0) continue;
    void *volatile *word = (void *volatile *)tsl_unit_address(unit);
    *word = &unit;
    CHECK(*word == &unit);
    tsl_unit_cache_give(unit);
  }
  return argument;
}

static void threads_share_units(void) {
  open_units();
  for (unsigned i = 0; i < 3; i++) tsl_unit_cache_give(first + i);
  threads_run(take_and_give, NULL);
  CHECK_EQ(tsl_unit_cache_units(), 3);
  CHECK_EQ(tsl_unit_cache_drain(SIZE_MAX), 3);
  state_check_segments();
}

int main(void) {
  RUN(empty_cache);
  RUN(last_given_is_taken_first);
  RUN(drained_units_are_free_and_dirty);
  RUN(least_units_since_asked);
  RUN(threads_share_units);
  return test_status();
}
