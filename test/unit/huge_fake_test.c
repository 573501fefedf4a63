#include "memory/huge.h"

#include "base/options.h"
#include "state.h"
#include "units.h"

enum { STEP = TSL_HUGE_STEP_UNITS, LEAST = TSL_HUGE_LEAST_UNITS };

static size_t huge_units(size_t first, size_t count) {
  size_t bytes = count << TSL_UNIT_LOG2;
  return os_fake_huge_bytes((void *)tsl_unit_address(first), bytes) >> TSL_UNIT_LOG2;
}

// The marks are what the system was told.
static void check_marks(void) {
  for (size_t unit = tsl_region.first_unit; unit < tsl_region.units; unit++)
    CHECK_EQ(tsl_huge_at(unit), huge_units(unit, 1) != 0);
}

static uint64_t advices(void) { return os_fake.calls[OS_FAKE_ADVISE_HUGE]; }

static void start(void) {
  tsl_options.thp = TSL_THP_AUTO;
  open_region(LARGE);
  CHECK(tsl_region_grow(512));
}

static void a_large_block_gets_the_steps_that_it_covers(void) {
  start();
  tsl_unit first = take(LEAST, STEP);
  CHECK_EQ(huge_units(first, LEAST), LEAST);
  uint64_t before = advices();
  tsl_unit inside = take(3 * STEP + 2, 1);
  CHECK_EQ(huge_units(inside, 3 * STEP + 2) % STEP, 0);
  CHECK_LE(2 * STEP, huge_units(inside, 3 * STEP + 2));
  CHECK_EQ(advices(), before + 1);
  check_marks();
}

static void a_smaller_one_gets_none(void) {
  start();
  uint64_t before = advices();
  tsl_unit first = take(LEAST - 1, STEP);
  CHECK_EQ(huge_units(first, LEAST - 1), 0);
  CHECK_EQ(advices(), before);
}

// HP1
static void who_takes_part_of_a_step_ends_it(void) {
  start();
  tsl_unit first = take(LEAST, STEP);
  tsl_units_give(first, LEAST);
  bool clean;
  CHECK(tsl_units_take_at(first + 5, 1, &clean));
  CHECK_EQ(huge_units(first, LEAST), LEAST);  // a block that grows says so itself
  tsl_huge_suit(first + 5, 1);
  CHECK_EQ(huge_units(first, STEP), 0);
  CHECK_EQ(huge_units(first + STEP, STEP), STEP);
  tsl_huge_suit(first + 2 * STEP - 1, 2);
  CHECK_EQ(huge_units(first, LEAST), 0);
  check_marks();
}

static void the_next_large_block_begins_it_again(void) {
  start();
  tsl_unit first = take(LEAST, STEP);
  tsl_huge_suit(first, 1);
  CHECK_EQ(huge_units(first, LEAST), STEP);
  uint64_t before = advices();
  tsl_huge_suit(first, LEAST);
  CHECK_EQ(huge_units(first, LEAST), LEAST);
  tsl_huge_suit(first, LEAST);
  CHECK_EQ(advices(), before + 1);
  check_marks();
}

static void a_step_is_purged_whole(void) {
  size_t cursor = 0;
  start();
  tsl_unit first = take(LEAST, STEP);
  tsl_units_give(first, LEAST);
  CHECK_EQ(tsl_units_purge(&cursor, STEP + 1), STEP);
  CHECK_EQ(tsl_units_dirty(), STEP);
  CHECK_EQ(tsl_units_purge(&cursor, 1), STEP);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(huge_units(first, LEAST), LEAST);
  state_check_segments();
}

// HP2
static void where_a_part_is_purged_no_huge_page_comes_again(void) {
  size_t cursor = 0;
  start();
  tsl_unit first = take(LEAST, STEP);
  tsl_units_give(first, STEP / 2);
  CHECK_EQ(tsl_units_purge(&cursor, LEAST), STEP / 2);
  CHECK_EQ(huge_units(first, LEAST), STEP);
  tsl_units_give(first + STEP + 1, STEP - 1);
  CHECK_EQ(tsl_units_purge(&cursor, 1), 1);
  CHECK_EQ(huge_units(first, LEAST), 0);
  check_marks();
}

// The end of a block may lie where a block before it had a huge page.
static void a_large_block_has_small_pages_at_its_ends(void) {
  bool clean;
  start();
  tsl_unit first = take(2 * LEAST, STEP);
  tsl_units_give(first, 2 * LEAST);
  CHECK(tsl_units_take_at(first + 1, LEAST, &clean));
  tsl_huge_suit(first + 1, LEAST);
  CHECK_EQ(huge_units(first, 2 * LEAST), 2 * STEP);
  CHECK(!tsl_huge_at(first) && !tsl_huge_at(first + LEAST) && tsl_huge_at(first + STEP));
  check_marks();
}

static void runs_are_bounded(void) {
  start();
  tsl_huge_most_runs = 2;
  tsl_unit first = take(5 * LEAST, STEP);
  tsl_huge_end(first, 5 * LEAST);
  for (unsigned i = 0; i < 5; i += 2) tsl_huge_suit(first + i * LEAST, LEAST);
  CHECK_EQ(huge_units(first, 5 * LEAST), 2 * LEAST);
  tsl_huge_end(first, 1);
  tsl_huge_suit(first + 4 * LEAST, LEAST);
  CHECK_EQ(huge_units(first, 5 * LEAST), 2 * LEAST - STEP);  // what is left of a run is one
  tsl_huge_end(first, LEAST);
  tsl_huge_suit(first + 4 * LEAST, LEAST);
  CHECK_EQ(huge_units(first, 5 * LEAST), 2 * LEAST);
  check_marks();
}

// Of two runs that were one each counts.
static void what_splits_a_run_is_counted(void) {
  start();
  tsl_huge_most_runs = 2;
  tsl_unit first = take(6 * LEAST, STEP);
  tsl_huge_end(first + LEAST, 1);
  tsl_huge_end(first + 4 * LEAST, 2 * LEAST);
  tsl_huge_suit(first + 5 * LEAST, LEAST);
  CHECK_EQ(huge_units(first + 5 * LEAST, LEAST), 0);
}

// Half of a huge page does not make a run longer.
static void what_is_not_all_dirty_is_purged_as_it_is(void) {
  size_t cursor = 0;
  start();
  tsl_unit first = take(LEAST, STEP);
  tsl_units_give(first, STEP - 1);
  CHECK_EQ(tsl_units_purge(&cursor, 1), 1);
  CHECK_EQ(tsl_units_dirty(), STEP - 2);
}

static void what_begins_with_a_page_is_purged_at_once(void) {
  size_t cursor = 0;
  start();
  tsl_unit first = take(LEAST, STEP);
  tsl_units_give(first, LEAST);
  CHECK_EQ(tsl_units_purge(&cursor, LEAST), LEAST);
}

static void what_is_mapped_anew_stays_as_it_was(void) {
  start();
  tsl_unit first = take(3 * STEP, STEP);
  tsl_huge_suit(first + STEP, 1);
  CHECK(tsl_region_renew(first + 1, 3 * STEP - 2));
  CHECK_EQ(huge_units(first, STEP), STEP);
  CHECK_EQ(huge_units(first + STEP, STEP), 0);
  CHECK_EQ(huge_units(first + 2 * STEP, STEP), STEP);
}

static void other_settings_leave_it_alone(void) {
  static const uint64_t settings[] = {TSL_THP_NEVER, TSL_THP_ALWAYS};
  for (unsigned i = 0; i < 2; i++) {
    tsl_options.thp = settings[i];
    open_region(LARGE);
    CHECK(tsl_region_grow(512));
    uint64_t before = advices();
    tsl_unit first = take(LEAST, STEP);
    tsl_units_give(first, STEP / 2);
    size_t cursor = 0;
    CHECK_EQ(tsl_units_purge(&cursor, LEAST), STEP / 2);
    CHECK_EQ(advices(), before);
    CHECK_EQ(tsl_huge_at(first), settings[i] == TSL_THP_ALWAYS);
    CHECK_EQ(tsl_huge_is_everywhere(), settings[i] == TSL_THP_ALWAYS);
    memset(&tsl_region, 0, sizeof tsl_region);
    os_fake_close_arena();
  }
}

int main(void) {
  RUN(a_large_block_gets_the_steps_that_it_covers);
  RUN(a_smaller_one_gets_none);
  RUN(who_takes_part_of_a_step_ends_it);
  RUN(the_next_large_block_begins_it_again);
  RUN(a_step_is_purged_whole);
  RUN(where_a_part_is_purged_no_huge_page_comes_again);
  RUN(a_large_block_has_small_pages_at_its_ends);
  RUN(runs_are_bounded);
  RUN(what_splits_a_run_is_counted);
  RUN(what_is_not_all_dirty_is_purged_as_it_is);
  RUN(what_begins_with_a_page_is_purged_at_once);
  RUN(what_is_mapped_anew_stays_as_it_was);
  RUN(other_settings_leave_it_alone);
  return test_status();
}
