#include "memory/window.h"

#include "base/options.h"
#include "memory/growth.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "os_fake.h"
#include "state.h"

// FEW go back whole.
enum { QUIET = 4, MOST_PATIENT = 64, LEAST_WASTE = 64, LEAST_GIVEN = 64, RATION_GROWTH = 4 };
enum { FEW = 60, MUCH = 200, ALL = 1000 };

static void open_region(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  os_fake.now_ms = 1000;
  tsl_options.thp = TSL_THP_NEVER;  // huge pages go back whole, however few units may
  CHECK(tsl_region_init());
  CHECK(tsl_region_grow(1));
}

// Takes so many units and gives them back, dirty.
static void use(size_t units) {
  bool clean;
  tsl_unit first = tsl_units_take(units, 1, &clean);
  CHECK(first != 0);
  tsl_units_give(first, units);
}

static void purge(size_t units) {
  size_t cursor = 0;
  while (units != 0) {
    size_t purged = tsl_units_purge(&cursor, units);
    CHECK(purged != 0);
    units -= purged;
  }
}

// A window in which the program needed all but `low` of ALL units.
static size_t busy_window(size_t low) { return tsl_window_end(low, ALL); }

static size_t quiet_window(void) { return tsl_window_end(ALL, ALL); }

// So many units go back and are taken again.
static void waste(size_t units) {
  use(units);
  purge(units);
  use(units);
}

static void make_patient(void) {
  open_region();
  CHECK_EQ(busy_window(FEW), FEW);
  waste(MUCH);
  CHECK_EQ(busy_window(FEW), 0);
}

static void each_window_counts_at_first(void) {
  open_region();
  CHECK_EQ(tsl_window_end(0, 0), 0);
  use(MUCH);
  CHECK_EQ(busy_window(FEW), FEW);
  purge(MUCH);
  CHECK_EQ(busy_window(10), 10);
}

// WI1
static void taken_again_makes_patient(void) {
  make_patient();
  for (unsigned i = 2; i < TSL_PATIENCE; i++) CHECK_EQ(busy_window(FEW), 0);
  CHECK_EQ(busy_window(FEW), FEW);
  CHECK_EQ(busy_window(FEW), 0);
}

static void the_least_of_all_patient_windows_counts(void) {
  make_patient();
  CHECK_EQ(busy_window(7), 0);
  for (unsigned i = 3; i < TSL_PATIENCE; i++) CHECK_EQ(busy_window(FEW), 0);
  CHECK_EQ(busy_window(FEW), 7);
  for (unsigned i = 1; i < TSL_PATIENCE; i++) CHECK_EQ(busy_window(30), 0);
  CHECK_EQ(busy_window(50), 30);
}

static void less_than_half_taken_again_does_not(void) {
  open_region();
  use(3 * MUCH);
  purge(3 * MUCH);
  use(MUCH);
  CHECK_EQ(busy_window(FEW), FEW);
}

static void half_taken_again_does(void) {
  open_region();
  use(2 * MUCH);
  purge(2 * MUCH);
  use(MUCH);
  CHECK_EQ(busy_window(FEW), 0);
}

static void little_taken_again_does_not(void) {
  open_region();
  waste(10);
  CHECK_EQ(busy_window(FEW), FEW);
}

static void old_waste_is_forgotten(void) {
  open_region();
  waste(LEAST_WASTE);
  for (unsigned i = 0; i < 10; i++) tsl_window_end(MUCH, MUCH);
  waste(1);
  CHECK_EQ(busy_window(FEW), FEW);
}

// What is dirty has not gone back, and what opens with the region was never there.
static void other_units_are_not_taken_again(void) {
  open_region();
  use(MUCH);
  purge(MUCH);
  CHECK_EQ(tsl_units_counts().purged, MUCH);
  use(MUCH + 50);
  CHECK_EQ(tsl_units_counts().refaulted, MUCH);
  use(MUCH + 50);
  CHECK_EQ(tsl_units_counts().refaulted, MUCH);
}

// Clean neighbours are held beside a run that goes back.
static void neighbours_of_a_purge_are_not_taken_again(void) {
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(30, 1, &clean);
  tsl_units_give(first + 10, 10);
  purge(10);
  tsl_units_give(first, 10);
  tsl_units_give(first + 20, 10);
  purge(20);
  CHECK_EQ(tsl_units_counts().refaulted, 0);
  use(30);
  CHECK_EQ(tsl_units_counts().refaulted, 30);
}

// WI2, WI4
static void a_program_that_goes_quiet_ends_patience(void) {
  make_patient();
  for (unsigned i = 1; i < QUIET; i++) CHECK_EQ(quiet_window(), 0);
  CHECK_EQ(quiet_window(), ALL - ALL / 4);
  CHECK_EQ(quiet_window(), ALL - ALL / 4);
}

static void a_little_need_is_quiet(void) {
  make_patient();
  for (unsigned i = 1; i < QUIET; i++) CHECK_EQ(tsl_window_end(ALL - 10, ALL), 0);
  CHECK_GE(tsl_window_end(ALL - 10, ALL), ALL / 2);
}

// Nobody knows what a program would leave that has taken all there is.
static void nothing_free_is_not_quiet(void) {
  make_patient();
  for (unsigned i = 0; i < 2 * QUIET; i++) CHECK_EQ(tsl_window_end(0, 0), 0);
  CHECK_EQ(tsl_window_end(ALL, ALL), 0);
}

static void what_goes_back_is_not_needed(void) {
  open_region();
  use(ALL);
  for (unsigned i = 1; i < QUIET; i++) CHECK_LE(quiet_window(), ALL / 2);
  CHECK_EQ(quiet_window(), ALL - ALL / 4);
  purge(ALL - ALL / 4);
  CHECK_EQ(tsl_window_end(ALL / 4, ALL / 4), ALL / 4 - ALL / 16);
}

// Though the low of the window, beside what went back, would be all there was.
static void what_went_back_and_was_taken_again_was_needed(void) {
  open_region();
  for (unsigned i = 0; i < QUIET; i++) quiet_window();
  use(ALL - ALL / 4);
  purge(ALL - ALL / 4);
  use(ALL - ALL / 4);
  CHECK_EQ(tsl_window_end(ALL / 4, ALL), 0);
}

static void pauses_between_bursts_are_not_quiet(void) {
  make_patient();
  for (unsigned i = 0; i < 10; i++) {
    for (unsigned pause = 1; pause < QUIET; pause++) CHECK_LE(quiet_window(), 7);
    CHECK_LE(busy_window(7), 7);
  }
}

// Whether waiting still pays is tried again: one window counts by itself.
static void patience_ends_after_a_while(void) {
  make_patient();
  for (unsigned i = 2; i < MOST_PATIENT; i++)
    CHECK_EQ(busy_window(40), i % TSL_PATIENCE == 0 ? 40 : 0);
  CHECK_EQ(busy_window(50), 40);
  CHECK_EQ(busy_window(50), 50);
  waste(MUCH);
  CHECK_EQ(busy_window(40), 0);
}

// WI3
static void near_the_limit_each_window_counts(void) {
  make_patient();
  tsl_options.soft_limit = 1;
  CHECK_EQ(busy_window(ALL / 2), ALL / 4);
  tsl_options.soft_limit = 0;
  CHECK_EQ(busy_window(40), 40);
}

// WI4
static void half_of_what_was_not_needed_goes_back(void) {
  open_region();
  for (unsigned i = 0; i < 4; i++) busy_window(ALL / 2);
  CHECK_EQ(busy_window(ALL / 2), ALL / 4);
  CHECK_EQ(busy_window(2 * LEAST_GIVEN), LEAST_GIVEN);
  CHECK_EQ(busy_window(LEAST_GIVEN), LEAST_GIVEN);
}

// WI5
static void the_start_is_slow(void) {
  open_region();
  CHECK_EQ(busy_window(ALL - ALL / 4), LEAST_GIVEN);
  CHECK_EQ(busy_window(FEW), FEW);
  CHECK_EQ(busy_window(ALL - ALL / 4), LEAST_GIVEN * RATION_GROWTH);
  CHECK_EQ(busy_window(ALL - ALL / 4), ALL / 2 - ALL / 8);
}

static void after_patience_the_start_is_slow_again(void) {
  open_region();
  for (unsigned i = 0; i < 4; i++) busy_window(ALL / 2);
  waste(MUCH);
  for (unsigned i = 1; i <= MOST_PATIENT; i++) busy_window(ALL / 2);
  CHECK_EQ(busy_window(ALL / 2), LEAST_GIVEN);
}

int main(void) {
  RUN(each_window_counts_at_first);
  RUN(taken_again_makes_patient);
  RUN(the_least_of_all_patient_windows_counts);
  RUN(less_than_half_taken_again_does_not);
  RUN(half_taken_again_does);
  RUN(little_taken_again_does_not);
  RUN(old_waste_is_forgotten);
  RUN(other_units_are_not_taken_again);
  RUN(neighbours_of_a_purge_are_not_taken_again);
  RUN(a_program_that_goes_quiet_ends_patience);
  RUN(a_little_need_is_quiet);
  RUN(nothing_free_is_not_quiet);
  RUN(what_goes_back_is_not_needed);
  RUN(what_went_back_and_was_taken_again_was_needed);
  RUN(pauses_between_bursts_are_not_quiet);
  RUN(patience_ends_after_a_while);
  RUN(near_the_limit_each_window_counts);
  RUN(half_of_what_was_not_needed_goes_back);
  RUN(the_start_is_slow);
  RUN(after_patience_the_start_is_slow_again);
  return test_status();
}
