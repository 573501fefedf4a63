#include "memory/purge.h"

#include "base/options.h"
#include "memory/growth.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "os_fake.h"
#include "state.h"

enum { DELAY_MS = 100, STEP_UNITS = 16, LATE_STEPS = 4, DRAIN_UNITS = 512 };

static void open_region(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  os_fake.now_ms = 1000;
  tsl_options.purge_delay_ms = DELAY_MS;
  tsl_options.thp = TSL_THP_NEVER;  // huge pages go back whole, however few units may
  CHECK(tsl_region_init());
  CHECK(tsl_region_grow(1));
}

// Turns that many units into dirty free ones, in one run.
static void make_dirty(size_t units) {
  bool clean;
  tsl_unit first = tsl_units_take(units, 1, &clean);
  CHECK(first != 0);
  tsl_units_give(first, units);
  CHECK_EQ(tsl_units_dirty(), units);
}

static size_t purged_units(void) { return os_fake.purged_bytes >> TSL_UNIT_LOG2; }

// Time passes with somebody on a slow path every millisecond; no millisecond sees more than one
// step.
static void pass_ms(unsigned ms) {
  for (unsigned i = 0; i < ms; i++) {
    size_t before = os_fake.purged_bytes;
    uint64_t calls = os_fake.calls[OS_FAKE_PURGE];
    os_fake.now_ms++;
    for (int again = 0; again < 3; again++) tsl_purge_tick();
    CHECK_LE(os_fake.purged_bytes - before, (size_t)1 << 20);
    CHECK_LE(os_fake.calls[OS_FAKE_PURGE] - calls, 1);
  }
}

static void nothing_to_do(void) {
  tsl_purge_tick();
  open_region();
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
}

static void unneeded_memory_goes_back_after_the_delay(void) {
  open_region();
  make_dirty(40);
  pass_ms(DELAY_MS - 1);
  CHECK_EQ(purged_units(), 0);
  pass_ms(DELAY_MS + 5);
  CHECK_EQ(purged_units(), 40);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 3);
  state_check_segments();
}

// A long time without any slow path makes a step that is a few times as large, not many.
static void a_late_tick_is_one_step(void) {
  open_region();
  make_dirty(200);
  tsl_purge_tick();
  os_fake.now_ms += 100 * DELAY_MS;
  tsl_purge_tick();
  CHECK_EQ(purged_units(), LATE_STEPS * STEP_UNITS);
  tsl_purge_tick();
  CHECK_EQ(purged_units(), LATE_STEPS * STEP_UNITS);
}

static void memory_in_demand_stays(void) {
  bool clean;
  open_region();
  make_dirty(64);
  for (int i = 0; i < 10 * DELAY_MS; i++) {
    pass_ms(1);
    if (i % (DELAY_MS / 2) != 0) continue;
    tsl_unit first = tsl_units_take(64, 1, &clean);
    CHECK(!clean);
    tsl_units_give(first, 64);
  }
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
}

// Only what the busiest moment of a window left unused goes back.
static void part_in_demand_stays(void) {
  bool clean;
  open_region();
  make_dirty(64);
  for (int i = 0; i < 5 * DELAY_MS; i++) {
    pass_ms(1);
    if (i % (DELAY_MS / 2) != 0) continue;
    tsl_unit first = tsl_units_take(20, 1, &clean);
    tsl_units_give(first, 20);
  }
  CHECK_EQ(purged_units(), 44);
  CHECK_EQ(tsl_units_dirty(), 20);
}

// Bursts that need all of it, with pauses longer than the delay: after the first ones it stays.
static void what_bursts_take_again_stays(void) {
  bool clean;
  size_t early = 0;
  open_region();
  make_dirty(200);
  for (int i = 0; i < 40; i++) {
    pass_ms(DELAY_MS + DELAY_MS / 2);
    tsl_unit first = tsl_units_take(200, 1, &clean);
    CHECK(first != 0);
    pass_ms(1);
    tsl_units_give(first, 200);
    if (i == 4) early = purged_units();
  }
  CHECK(early != 0);
  CHECK_EQ(purged_units(), early);
  pass_ms(20 * DELAY_MS);
  CHECK_EQ(tsl_units_dirty(), 0);
}

// Taking idle units to the segments costs a program that takes them again.
static void the_unit_cache_is_left_alone_in_patience(void) {
  enum { UNITS = 200 };
  bool clean;
  open_region();
  make_dirty(UNITS);
  for (int i = 0; i < 4; i++) {
    pass_ms(DELAY_MS + DELAY_MS / 2);
    tsl_unit first = tsl_units_take(UNITS, 1, &clean);
    tsl_units_give(first, UNITS);
  }
  tsl_unit first = tsl_units_take(UNITS, 1, &clean);
  for (unsigned i = 0; i < UNITS; i++) tsl_unit_cache_give(first + i);
  pass_ms(2 * DELAY_MS);
  CHECK_EQ(tsl_unit_cache_units(), UNITS);
  pass_ms(20 * DELAY_MS);
  CHECK_EQ(tsl_unit_cache_units(), 0);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void the_unit_cache_is_drained_first(void) {
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(50, 1, &clean);
  for (unsigned i = 0; i < 50; i++) tsl_unit_cache_give(first + i);
  pass_ms(DELAY_MS - 1);
  CHECK_EQ(tsl_unit_cache_units(), 50);
  pass_ms(2 * DELAY_MS);
  CHECK_EQ(tsl_unit_cache_units(), 0);
  CHECK_EQ(purged_units(), 50);
  state_check();
}

static void cached_units_in_demand_stay(void) {
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(10, 1, &clean);
  for (unsigned i = 0; i < 10; i++) tsl_unit_cache_give(first + i);
  for (int i = 0; i < 10 * DELAY_MS; i++) {
    pass_ms(1);
    if (i % (DELAY_MS / 2) != 0) continue;
    tsl_unit units[10];
    for (int u = 0; u < 10; u++) units[u] = tsl_unit_cache_take();
    for (int u = 0; u < 10; u++) tsl_unit_cache_give(units[u]);
  }
  CHECK_EQ(tsl_unit_cache_units(), 10);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
}

static void cached_units_beyond_demand_go_back(void) {
  bool clean;
  tsl_unit first, taken[30];
  open_region();
  first = tsl_units_take(50, 1, &clean);
  for (unsigned i = 0; i < 50; i++) tsl_unit_cache_give(first + i);
  for (int i = 0; i < 3 * DELAY_MS; i++) {
    pass_ms(1);
    if (i % (DELAY_MS / 2) != 0) continue;
    for (int u = 0; u < 30; u++) taken[u] = tsl_unit_cache_take();
    for (int u = 0; u < 30; u++) tsl_unit_cache_give(taken[u]);
  }
  CHECK_EQ(tsl_unit_cache_units(), 30);
  CHECK_EQ(purged_units(), 20);
}

// Slowly at first, by halves then, and by three quarters once the program is quiet, though it lies
// in disorder in the unit cache; what waited there counts as idle all the time.
static void a_long_surplus_goes_back_by_parts(void) {
  enum { UNITS = 3200, WINDOWS = 7 };
  static const size_t parts[WINDOWS] = {64, 256, 1024, 1392, 348, 64, 52};
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(UNITS, 1, &clean);
  CHECK(first != 0);
  for (unsigned i = 0; i < UNITS; i++) tsl_unit_cache_give(first + (i * 7919) % UNITS);
  pass_ms(DELAY_MS);
  CHECK_EQ(purged_units(), 0);
  // Draining delays the first windows' purges by a few steps.
  size_t before = 0, late = STEP_UNITS * (UNITS / DRAIN_UNITS + 1);
  for (unsigned window = 0; window < WINDOWS; window++) {
    pass_ms(DELAY_MS);
    before += parts[window];
    CHECK_EQ(tsl_unit_cache_units(), 0);
    CHECK_LE(purged_units(), before);
    CHECK_GE(purged_units() + late, before);
  }
  CHECK_EQ(purged_units(), UNITS);
}

// A heap stays awake for a surplus alone, and wakes where memory is free at all.
static void a_surplus_is_more_to_do(void) {
  open_region();
  CHECK(!tsl_purge_tick() && !tsl_purge_waits());
  make_dirty(40);
  CHECK(!tsl_purge_tick() && tsl_purge_waits());
  for (unsigned ms = 0; purged_units() == 0; ms++) {
    pass_ms(1);
    CHECK(ms < 4 * DELAY_MS);
  }
  for (; tsl_units_dirty() != 0; pass_ms(1)) CHECK(tsl_purge_tick() && tsl_purge_waits());
  CHECK(!tsl_purge_tick() && !tsl_purge_waits());
  make_dirty(20);
  tsl_purge_keep(20 * TSL_UNIT_BYTES);
  CHECK(!tsl_purge_tick() && !tsl_purge_waits());
}

static void no_delay(void) {
  open_region();
  tsl_options.purge_delay_ms = 0;
  make_dirty(20);
  pass_ms(4);
  CHECK_EQ(purged_units(), 20);
}

// A refusal ends the window's work; the next one tries again.
static void refused_purge_is_tried_again_later(void) {
  open_region();
  make_dirty(20);
  os_fake_fail_all(OS_FAKE_PURGE);
  pass_ms(5 * DELAY_MS);
  CHECK_GE(os_fake.calls[OS_FAKE_PURGE], 3);
  CHECK_LE(os_fake.calls[OS_FAKE_PURGE], 5);
  CHECK_EQ(tsl_units_dirty(), 20);
  os_fake_recover();
  pass_ms(2 * DELAY_MS);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void taken_meanwhile(void) {
  bool clean;
  open_region();
  make_dirty(64);
  pass_ms(DELAY_MS + 1);
  CHECK(tsl_units_take(128, 1, &clean) != 0);
  pass_ms(DELAY_MS);
  CHECK_LE(purged_units(), 64);
  CHECK_EQ(tsl_units_dirty(), 0);
  state_check_segments();
}

static void all_at_once(void) {
  bool clean;
  open_region();
  make_dirty(300);
  tsl_unit first = tsl_units_take(4, 1, &clean);
  tsl_unit_cache_give(first);
  CHECK_EQ(tsl_purge_all(0), (300 - 3) * TSL_UNIT_BYTES);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(tsl_unit_cache_units(), 0);
  CHECK_EQ(tsl_purge_all(0), 0);
}

static void now_without_a_helper(void) {
  open_region();
  make_dirty(40);
  tsl_purge_now();
  CHECK_EQ(purged_units(), 40);
  CHECK_EQ(os_fake.calls[OS_FAKE_WAKE], 0);
}

// Who asks does not wait; asking twice is asking once.
static void now_by_the_helper(void) {
  open_region();
  make_dirty(40);
  tsl_purge_set_helper(true);
  tsl_purge_now();
  tsl_purge_now();
  CHECK_EQ(purged_units(), 0);
  CHECK_EQ(os_fake.calls[OS_FAKE_WAKE], 1);
  CHECK(tsl_purge_help(DELAY_MS));
  CHECK_EQ(purged_units(), 40);
  CHECK_EQ(os_fake.calls[OS_FAKE_SLEEP], 0);
  make_dirty(30);
  CHECK(!tsl_purge_help(DELAY_MS));
  CHECK_EQ(purged_units(), 40);
  CHECK_EQ(os_fake.calls[OS_FAKE_SLEEP], 1);
  tsl_purge_set_helper(false);
  tsl_purge_now();
  CHECK_EQ(purged_units(), 70);
}

static void all_but_some(void) {
  open_region();
  make_dirty(100);
  CHECK_EQ(tsl_purge_all(100 * TSL_UNIT_BYTES), 0);
  CHECK_EQ(tsl_purge_all(SIZE_MAX), 0);
  CHECK_EQ(tsl_purge_all(40 * TSL_UNIT_BYTES), 60 * TSL_UNIT_BYTES);
  CHECK_EQ(tsl_units_dirty(), 40);
  CHECK_EQ(tsl_purge_all(1), 40 * TSL_UNIT_BYTES);
}

static void all_in_many_segments(void) {
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(3 * TSL_SEGMENT_UNITS, 1, &clean);
  CHECK(first != 0);
  for (unsigned i = 0; i < 30; i++) tsl_units_give(first + i * (TSL_SEGMENT_UNITS / 10), 3);
  CHECK_EQ(tsl_purge_all(0), 30 * 3 * TSL_UNIT_BYTES);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void all_refused(void) {
  open_region();
  make_dirty(10);
  os_fake_fail_all(OS_FAKE_PURGE);
  CHECK_EQ(tsl_purge_all(0), 0);
  CHECK_EQ(tsl_units_dirty(), 10);
  state_check_segments();
}

// What is kept is in nobody's way, and surplus beyond it goes back as ever.
static void kept_memory_stays(void) {
  open_region();
  make_dirty(40);
  tsl_purge_keep(30 * TSL_UNIT_BYTES);
  pass_ms(10 * DELAY_MS);
  CHECK_EQ(purged_units(), 10);
  CHECK_EQ(tsl_units_dirty(), 30);
  state_check_segments();
}

static void more_is_kept_than_there_is(void) {
  open_region();
  make_dirty(40);
  tsl_purge_keep(100 * TSL_UNIT_BYTES);
  pass_ms(3 * DELAY_MS);
  make_dirty(90);
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(purged_units(), 0);
  make_dirty(120);
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(tsl_units_dirty(), 100);
}

// The most that anybody wanted, in whole units.
static void the_most_is_kept(void) {
  open_region();
  make_dirty(40);
  tsl_purge_keep(0);
  tsl_purge_keep(20 * TSL_UNIT_BYTES - 1);
  tsl_purge_keep(3 * TSL_UNIT_BYTES);
  tsl_purge_keep(0);
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(tsl_units_dirty(), 20);
  tsl_purge_keep(1);
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(tsl_units_dirty(), 20);
}

static void cached_units_are_kept_first(void) {
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(50, 1, &clean);
  for (unsigned i = 0; i < 10; i++) tsl_unit_cache_give(first + i);
  tsl_units_give(first + 10, 40);
  tsl_purge_keep(25 * TSL_UNIT_BYTES);
  pass_ms(5 * DELAY_MS);
  CHECK_EQ(tsl_unit_cache_units(), 10);
  CHECK_EQ(tsl_units_dirty(), 15);
  CHECK_EQ(purged_units(), 25);
}

static void cached_units_beyond_those_kept_go_back(void) {
  bool clean;
  open_region();
  tsl_unit first = tsl_units_take(50, 1, &clean);
  for (unsigned i = 0; i < 50; i++) tsl_unit_cache_give(first + i);
  tsl_purge_keep(20 * TSL_UNIT_BYTES);
  pass_ms(5 * DELAY_MS);
  CHECK_EQ(tsl_unit_cache_units(), 20);
  CHECK_EQ(purged_units(), 30);
}

static void all_that_was_kept_goes_back(void) {
  open_region();
  make_dirty(40);
  tsl_purge_keep(30 * TSL_UNIT_BYTES);
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(tsl_purge_all(0), 30 * TSL_UNIT_BYTES);
  make_dirty(40);
  pass_ms(3 * DELAY_MS);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void before_the_first_allocation(void) { CHECK_EQ(tsl_purge_all(0), 0); }

int main(void) {
  RUN(nothing_to_do);
  RUN(unneeded_memory_goes_back_after_the_delay);
  RUN(a_late_tick_is_one_step);
  RUN(memory_in_demand_stays);
  RUN(part_in_demand_stays);
  RUN(what_bursts_take_again_stays);
  RUN(the_unit_cache_is_left_alone_in_patience);
  RUN(the_unit_cache_is_drained_first);
  RUN(cached_units_in_demand_stay);
  RUN(cached_units_beyond_demand_go_back);
  RUN(a_long_surplus_goes_back_by_parts);
  RUN(a_surplus_is_more_to_do);
  RUN(no_delay);
  RUN(refused_purge_is_tried_again_later);
  RUN(taken_meanwhile);
  RUN(all_at_once);
  RUN(now_without_a_helper);
  RUN(now_by_the_helper);
  RUN(all_but_some);
  RUN(all_in_many_segments);
  RUN(all_refused);
  RUN(kept_memory_stays);
  RUN(more_is_kept_than_there_is);
  RUN(the_most_is_kept);
  RUN(cached_units_are_kept_first);
  RUN(cached_units_beyond_those_kept_go_back);
  RUN(all_that_was_kept_goes_back);
  RUN(before_the_first_allocation);
  return test_status();
}
