#include "units.h"

#include "memory/segment.h"
#include "os/os.h"
#include "state.h"
#include "threads.h"

enum { MOST_RUNS = 64, STEPS = 1500 };

static void open_whole_segments(unsigned count) {
  while (tsl_region.units < (first_segment() + count) * SEGMENT) CHECK(tsl_region_grow(1));
}

static uint64_t *unit_words(size_t unit) { return (uint64_t *)tsl_unit_address(unit); }

// Looks at the words that unit_write writes.
static bool unit_is_zero(size_t unit) {
  for (size_t i = 0; i < TSL_UNIT_BYTES / 8; i += 2039) {
    if (unit_words(unit)[i] != 0) return false;
  }
  return true;
}

static void unit_write(size_t unit, uint64_t value) {
  for (size_t i = 0; i < TSL_UNIT_BYTES / 8; i += 2039) unit_words(unit)[i] = value;
}

static bool unit_holds(size_t unit, uint64_t value) {
  for (size_t i = 0; i < TSL_UNIT_BYTES / 8; i += 2039) {
    if (unit_words(unit)[i] != value) return false;
  }
  return true;
}

static void fresh_units_are_clean(void) {
  bool clean = false;
  open_region(SMALL);
  tsl_unit first = tsl_units_take(7, 1, &clean);
  CHECK(clean);
  for (unsigned i = 0; i < 7; i++) CHECK(unit_is_zero(first + i));
  CHECK_EQ(tsl_units_dirty(), 0);
  state_check_segments();
}

// G3
static void given_units_are_dirty(void) {
  bool clean = true;
  open_region(SMALL);
  tsl_unit first = take(4, 1);
  unit_write(first, 1);
  tsl_units_give(first, 4);
  CHECK_EQ(tsl_units_dirty(), 4);
  CHECK_EQ(tsl_units_take(4, 1, &clean), first);
  CHECK(!clean);
  CHECK_EQ(tsl_units_dirty(), 0);
}

// One dirty unit among clean ones is enough.
static void partly_dirty_is_not_clean(void) {
  bool clean = true;
  open_region(SMALL);
  tsl_unit first = take(1, 1);
  tsl_units_give(first, 1);
  CHECK_EQ(tsl_units_take(5, 1, &clean), first);
  CHECK(!clean);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void alignment(void) {
  open_region(LARGE);
  for (unsigned align = 1; align <= 2 * SEGMENT; align *= 2) {
    for (unsigned count = 1; count <= 300; count += 299) take(count, align);
    state_check_segments();
  }
}

// A run aligned inside leaves the units before and behind it free.
static void alignment_wastes_nothing(void) {
  open_region(SMALL);
  CHECK(tsl_region_grow(128));
  size_t free = tsl_units_free();
  take(3, 64);
  CHECK_EQ(tsl_units_free(), free - 3);
}

static void longer_than_a_segment(void) {
  static const size_t counts[] = {SEGMENT + 1, 2 * SEGMENT - 1, 2 * SEGMENT, 2 * SEGMENT + 1,
                                  3 * SEGMENT + 476};
  open_region(LARGE);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    bool clean;
    tsl_unit first = tsl_units_take(counts[i], 1, &clean);
    CHECK(first != 0);
    CHECK_EQ(first % SEGMENT, 0);
    CHECK_EQ(clean, i == 0);
    CHECK(os_fake_is_committed((void *)tsl_unit_address(first), counts[i] << TSL_UNIT_LOG2));
    size_t free = tsl_units_free();
    unit_write(first + counts[i] - 1, 1);
    tsl_units_give(first, counts[i]);
    CHECK_EQ(tsl_units_free(), free + counts[i]);
    state_check_segments();
  }
}

static void tail_of_a_long_run_is_free(void) {
  bool clean;
  open_region(LARGE);
  tsl_unit first = take(SEGMENT + 88, 1);
  CHECK(tsl_units_take_at(first + SEGMENT + 88, SEGMENT - 88, &clean));
  CHECK(clean);
}

// Every unit of the region can be taken, however it had to grow for it.
static void all_of_the_region_is_used(void) {
  static const size_t counts[] = {1, 7, 100, TSL_GROWTH_UNITS + 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    bool clean;
    os_fake.limit_bytes = (size_t)1 << 28;
    CHECK(tsl_region_init());
    while (tsl_units_take(counts[i], 1, &clean) != 0) continue;
    CHECK_EQ(tsl_region.units, tsl_region.limit_units);
    size_t segments = tsl_region.limit_units / SEGMENT + 1;
    CHECK_LE(tsl_units_free(), segments * (counts[i] - 1));
    os_fake_close_arena();
    tsl_region = (struct tsl_region){0};
  }
}

// Growth stops as soon as there is room.
static void grows_no_more_than_needed(void) {
  open_region(LARGE);
  for (int i = 0; i < 12; i++) {
    take_all_open();
    size_t units = tsl_region.units;
    size_t open = tsl_units_open();
    take(1, 1);
    CHECK_GE(tsl_region.units, units + TSL_LEAST_GROWTH_UNITS);
    CHECK_LE(tsl_region.units, units + open / 4 + TSL_LEAST_GROWTH_UNITS);
  }
}

static void no_room_at_all(void) {
  bool clean;
  open_region(SMALL);
  CHECK_EQ(tsl_units_take(tsl_region.limit_units, 1, &clean), 0);
  CHECK_EQ(tsl_units_take(SIZE_MAX >> TSL_UNIT_LOG2, 1, &clean), 0);
  CHECK_EQ(tsl_units_free(), tsl_units_open());
  while (tsl_region_grow(1)) continue;
  take_all_open();
  CHECK_EQ(tsl_units_take(1, 1, &clean), 0);
  CHECK_EQ(tsl_units_take(256, 256, &clean), 0);
  CHECK_EQ(tsl_units_take(SEGMENT, 1, &clean), 0);
  CHECK_EQ(tsl_units_take(SEGMENT + 1, 1, &clean), 0);
  state_check_segments();
}

// What cannot be had at any size of the region must not make it grow.
static void impossible_runs_grow_nothing(void) {
  bool clean;
  open_region((size_t)1 << 28);
  size_t units = tsl_region.units;
  CHECK_EQ(tsl_units_take(tsl_region.limit_units, 1, &clean), 0);
  CHECK_EQ(tsl_units_take(1, tsl_region.limit_units, &clean), 0);
  CHECK_EQ(tsl_units_take(1, (size_t)1 << 46, &clean), 0);
  CHECK_EQ(tsl_region.units, units);
}

// Segments that were tried in vain for a run go back as they were.
static void segments_tried_in_vain_stay_clean(void) {
  bool clean;
  open_region(LARGE);
  open_whole_segments(4);
  CHECK(tsl_units_take_at((tsl_unit)((first_segment() + 3) * SEGMENT + 9), 1, &clean));
  CHECK(tsl_units_take(5 * SEGMENT, 1, &clean) != 0);
  CHECK(clean);
  CHECK_EQ(tsl_units_dirty(), 0);
  state_check_segments();
}

static void refused_growth(void) {
  bool clean;
  open_region(LARGE);
  take_all_open();
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK_EQ(tsl_units_take(1, 1, &clean), 0);
  CHECK_EQ(tsl_units_take(SEGMENT + 1, 1, &clean), 0);
  state_check_segments();
  os_fake_recover();
  take(1, 1);
  size_t free = tsl_units_free(), committed = os_fake.committed_bytes;
  os_fake.failures[OS_FAKE_COMMIT].from = os_fake.calls[OS_FAKE_COMMIT] + 3;
  CHECK_EQ(tsl_units_take(3 * SEGMENT, 1, &clean), 0);
  CHECK_EQ(tsl_units_free(), free);
  CHECK_EQ(os_fake.committed_bytes, committed);
  CHECK_EQ(tsl_units_dirty(), 0);
  os_fake_recover();
  CHECK(tsl_units_take(3 * SEGMENT, 1, &clean) != 0);
  CHECK(clean);
  state_check_segments();
}

static void runs_across_segments(void) {
  bool clean = false;
  open_region(LARGE / 2);
  while (tsl_region_grow(1)) continue;
  size_t end = (first_segment() + 2) * SEGMENT;
  take_all_open();
  tsl_units_give((tsl_unit)end - 400, 1000);
  CHECK_EQ(take(900, 1), end - 400);
  CHECK_EQ(tsl_units_take(101, 1, &clean), 0);
  CHECK_EQ(take(100, 1), end + 500);
  state_check_segments();
}

static void runs_across_segments_may_begin_with_the_last_unit(void) {
  open_region(LARGE / 2);
  while (tsl_region_grow(1)) continue;
  size_t end = (first_segment() + 2) * SEGMENT;
  take_all_open();
  tsl_units_give((tsl_unit)end - 1, 600);
  CHECK_EQ(take(600, 1), end - 1);
  state_check_segments();
}

// The system is asked once for all of a large want, so that it can refuse.
static void large_wants_grow_in_one_step(void) {
  open_region(LARGE);
  uint64_t commits = os_fake.calls[OS_FAKE_COMMIT];
  take(5 * SEGMENT, 1);
  CHECK_LE(os_fake.calls[OS_FAKE_COMMIT], commits + 6);
  state_check_segments();
}

static void take_at(void) {
  bool clean = false;
  open_region(SMALL);
  tsl_unit first = take(4, 1);
  CHECK(tsl_units_take_at(first + 4, 3, &clean));
  CHECK(clean);
  CHECK(!tsl_units_take_at(first + 6, 1, &clean));
  CHECK(!tsl_units_take_at(first + 5, 100, &clean));
  tsl_units_give(first + 6, 1);
  CHECK(tsl_units_take_at(first + 6, 2, &clean));
  CHECK(!clean);
  state_check_segments();
}

static void take_at_needs_open_units(void) {
  bool clean;
  open_region(LARGE);
  tsl_unit end = (tsl_unit)tsl_region.units;
  size_t free = tsl_units_free();
  CHECK(!tsl_units_take_at(end, 1, &clean));
  CHECK(!tsl_units_take_at(end - 3, 4, &clean));
  CHECK(!tsl_units_take_at(end - 3, SIZE_MAX >> TSL_UNIT_LOG2, &clean));
  CHECK_EQ(tsl_units_free(), free);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK(tsl_region_grow(301));
  CHECK(tsl_units_take_at(end - 3, 4 + 300, &clean));
  CHECK(clean);
  CHECK_EQ(tsl_units_free(), free + tsl_region.units - end - 304);
  state_check_segments();
}

// What take_at had taken before it failed goes back as it was.
static void take_at_crosses_segments(void) {
  bool clean;
  open_region(LARGE);
  open_whole_segments(2);
  tsl_unit end = (tsl_unit)((first_segment() + 1) * SEGMENT);
  CHECK(tsl_units_take_at(end + 5, 1, &clean));
  size_t free = tsl_units_free();
  CHECK(!tsl_units_take_at(end - 9, 20, &clean));
  CHECK_EQ(tsl_units_free(), free);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK(tsl_units_take_at(end - 9, 14, &clean));
  CHECK(clean);
  state_check_segments();
}

static void *lock_segment(void *segment) {
  tsl_lock_acquire(&((struct tsl_segment *)segment)->lock);
  return NULL;
}

// A thread ends with the lock.
static void lock_elsewhere(size_t segment) {
  threads_run_one(lock_segment, tsl_segment_at(segment));
}

// G4
static void locked_segments_are_passed_over(void) {
  bool clean;
  open_region(LARGE);
  open_whole_segments(2);
  size_t first = first_segment();
  lock_elsewhere(first);
  CHECK_EQ(take(1, 1) / SEGMENT, first + 1);
  CHECK(!tsl_units_take_at((tsl_unit)tsl_region.first_unit, 1, &clean));
  lock_elsewhere(first + 1);
  CHECK_EQ(take(1, 1) / SEGMENT, first + 2);
  CHECK_EQ(take(SEGMENT + 1, 1) / SEGMENT, first + 3);
}

static void locked_segments_are_not_purged(void) {
  size_t cursor = 0;
  open_region(SMALL);
  tsl_units_give(take(5, 1), 5);
  tsl_lock_acquire(&tsl_segment_at(first_segment())->lock);
  CHECK_EQ(tsl_units_purge(&cursor, 5), 0);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
  tsl_lock_release(&tsl_segment_at(first_segment())->lock);
  CHECK_EQ(tsl_units_purge(&cursor, 5), 5);
}

static void lowest_segment_with_room_first(void) {
  open_region(LARGE);
  open_whole_segments(1);
  tsl_unit low = take(1, 1);
  take_all_open();
  tsl_unit high = take(1, 1);
  CHECK_EQ(high / SEGMENT, low / SEGMENT + 1);
  CHECK_EQ(take(1, 1) / SEGMENT, high / SEGMENT);
  tsl_units_give(low, 1);
  CHECK_EQ(take(1, 1), low);
}

// One that had none of the wanted size has one of another all the same.
static void segments_with_some_room_are_not_passed_over_later(void) {
  open_region(LARGE);
  open_whole_segments(2);
  tsl_unit low = take(1, 1);
  take_all_open();
  tsl_unit high = (tsl_unit)((first_segment() + 1) * SEGMENT);
  tsl_units_give(low, 1);
  tsl_units_give(high, 3);
  CHECK_EQ(take(2, 1), high);
  CHECK_EQ(take(1, 1), low);
}

static void purged_units_are_clean(void) {
  bool clean = false;
  size_t cursor = 0;
  open_region(SMALL);
  tsl_unit first = take(8, 1);
  for (unsigned i = 0; i < 8; i++) unit_write(first + i, 7);
  tsl_units_give(first + 2, 5);
  CHECK_EQ(tsl_units_purge(&cursor, 3), 3);
  CHECK_EQ(tsl_units_dirty(), 2);
  CHECK_EQ(tsl_units_purge(&cursor, 100), 2);
  CHECK_EQ(os_fake.purged_bytes, 5 * TSL_UNIT_BYTES);
  CHECK_EQ(tsl_units_purge(&cursor, 100), 0);
  CHECK(tsl_units_take_at(first + 2, 5, &clean));
  CHECK(clean);
  for (unsigned i = 0; i < 8; i++) CHECK(unit_holds(first + i, i >= 2 && i < 7 ? 0 : 7));
  state_check_segments();
}

static void refused_purge_keeps_units_dirty(void) {
  bool clean = true;
  size_t cursor = 0;
  open_region(SMALL);
  tsl_unit first = take(4, 1);
  tsl_units_give(first, 4);
  os_fake_fail_next(OS_FAKE_PURGE);
  CHECK_EQ(tsl_units_purge(&cursor, 4), 0);
  CHECK_EQ(tsl_units_dirty(), 4);
  state_check_segments();
  CHECK_EQ(tsl_units_take(4, 1, &clean), first);
  CHECK(!clean);
}

// What is lost is of the marked ones; what lies beside them is given back.
static void moved_units_are_purged_by_renewal(void) {
  bool clean = false;
  size_t cursor = 0;
  open_region(SMALL);
  tsl_unit first = take(20, 1);
  for (unsigned i = 0; i < 20; i++) unit_write(first + i, i < 10 ? 7 : 0);
  tsl_units_give(first, 4);
  tsl_units_give_moved(first + 4, 6);
  tsl_units_give_clean(first + 10, 10);
  CHECK_EQ(tsl_units_purge(&cursor, 4), 4);
  CHECK_EQ(os_fake.calls[OS_FAKE_RENEW], 1);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
  CHECK_EQ(tsl_segments_moved_units(), 2);
  size_t free = tsl_units_free();
  os_fake_fail_next(OS_FAKE_RENEW);
  CHECK_EQ(tsl_units_purge(&cursor, 4), 0);
  CHECK_EQ(tsl_units_free(), free - 2);
  state_check_segments();
  CHECK_EQ(tsl_units_purge(&cursor, 4), 4);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 1);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK(tsl_units_take_at(first + 6, 14, &clean));
  CHECK(clean && unit_is_zero(first + 6));
}

static void moved_units_across_segments(void) {
  open_region(LARGE);
  open_whole_segments(2);
  bool clean;
  tsl_unit first = (tsl_unit)((first_segment() + 1) * SEGMENT - 3);
  CHECK(tsl_units_take_at(first, 10, &clean));
  tsl_units_give_moved(first + 1, 8);
  CHECK_EQ(tsl_segments_moved_units(), 8);
  CHECK(tsl_units_take_at(first + 1, 8, &clean));
  CHECK_EQ(tsl_units_count_moved(first, 10), 8);
  CHECK_EQ(tsl_units_count_moved(first, 3), 2);
  CHECK_EQ(tsl_units_count_moved(first + 3, 7), 6);
  CHECK(tsl_units_renew(first, 5));
  CHECK_EQ(tsl_units_count_moved(first, 10), 4);
  state_check_segments();
}

static void purge_looks_through_all_segments(void) {
  size_t cursor = 0, purged = 0;
  open_region(LARGE);
  tsl_unit first = take(7 * SEGMENT / 2, 1);
  for (unsigned i = 0; i < 7; i++) tsl_units_give(first + i * SEGMENT / 2 + 9, 2);
  for (size_t step; (step = tsl_units_purge(&cursor, 100)) != 0; purged += step) CHECK_EQ(step, 2);
  CHECK_EQ(purged, 14);
  CHECK_EQ(tsl_units_dirty(), 0);
}

// Pages that the next request would take are the last ones to lose their contents.
static void purge_begins_where_nobody_takes(void) {
  bool clean;
  size_t cursor = 0;
  open_region(SMALL);
  tsl_units_give(take(30, 1), 30);
  CHECK_EQ(tsl_units_purge(&cursor, 20), 20);
  CHECK(tsl_units_take(10, 1, &clean) != 0);
  CHECK(!clean);
  CHECK_EQ(tsl_units_dirty(), 0);
}

// The random test's own book of what is taken, by run.
static struct taken {
  size_t first, count;
  uint64_t value;
} runs[MOST_RUNS];

static void run_begin(struct taken *run, size_t first, size_t count, bool clean, uint64_t value) {
  *run = (struct taken){first, count, value};
  for (size_t i = 0; i < count; i++) {
    if (clean) CHECK(unit_is_zero(first + i));
    unit_write(first + i, value + i);
  }
}

static void run_check(const struct taken *run) {
  for (size_t i = 0; i < run->count; i++) CHECK(unit_holds(run->first + i, run->value + i));
}

static void run_end(struct taken *run) {
  run_check(run);
  if (run->count != 0 && run->value % 3 == 0)
    tsl_units_give_moved((tsl_unit)run->first, run->count);
  else
    tsl_units_give((tsl_unit)run->first, run->count);
  *run = (struct taken){0};
}

static void run_take(struct taken *run, uint64_t *seed) {
  bool clean, long_run = test_random_below(seed, 50) == 0;
  size_t count = 1 + test_random_below(seed, long_run ? 3 * SEGMENT / 2 : 60);
  size_t align = (size_t)1 << (test_random_below(seed, 2) * test_random_below(seed, 10));
  size_t first = tsl_units_take(count, align, &clean);
  if (first == 0) return;
  CHECK_EQ(first % align, 0);
  run_begin(run, first, count, clean, test_random(seed));
}

// Grows a run in place, or cuts it.
static void run_resize(struct taken *run, uint64_t *seed) {
  bool clean;
  size_t by = 1 + test_random_below(seed, 20);
  size_t end = run->first + run->count;
  run_check(run);
  if (test_random_below(seed, 2) == 0 && tsl_units_take_at((tsl_unit)end, by, &clean)) {
    for (size_t i = 0; clean && i < by; i++) CHECK(unit_is_zero(end + i));
    run_begin(run, run->first, run->count + by, false, run->value);
  } else if (by < run->count) {
    tsl_units_give((tsl_unit)(end - by), by);
    run->count -= by;
  }
}

static void purge_randomly(size_t *cursor, uint64_t *seed) {
  size_t dirty = tsl_units_dirty();
  if (test_random_below(seed, 4) == 0) os_fake_fail_next(OS_FAKE_PURGE);
  size_t purged = tsl_units_purge(cursor, 1 + test_random_below(seed, 30));
  CHECK_EQ(tsl_units_dirty(), dirty - purged);
}

static size_t units_in_runs(void) {
  size_t units = 0;
  for (int i = 0; i < MOST_RUNS; i++) units += runs[i].count;
  return units;
}

static void random_step(size_t *cursor, uint64_t *seed) {
  struct taken *run = &runs[test_random_below(seed, MOST_RUNS)];
  unsigned what = test_random_below(seed, 8);
  if (what == 0) {
    purge_randomly(cursor, seed);
  } else if (run->count == 0) {
    run_take(run, seed);
  } else if (what <= 2) {
    run_resize(run, seed);
  } else {
    run_end(run);
  }
}

static void random_operations(void) {
  uint64_t seed = 11;
  size_t cursor = 0;
  open_region(LARGE / 2);
  for (int step = 0; step < STEPS; step++) {
    check_context_set("step %d", step);
    random_step(&cursor, &seed);
    CHECK_EQ(units_in_runs() + tsl_units_free(), tsl_units_open());
    state_check_segments();
  }
  for (int i = 0; i < MOST_RUNS; i++) run_end(&runs[i]);
  CHECK_EQ(tsl_units_free(), tsl_units_open());
}

int main(void) {
  RUN(fresh_units_are_clean);
  RUN(given_units_are_dirty);
  RUN(partly_dirty_is_not_clean);
  RUN(alignment);
  RUN(alignment_wastes_nothing);
  RUN(longer_than_a_segment);
  RUN(tail_of_a_long_run_is_free);
  RUN(all_of_the_region_is_used);
  RUN(grows_no_more_than_needed);
  RUN(no_room_at_all);
  RUN(impossible_runs_grow_nothing);
  RUN(segments_tried_in_vain_stay_clean);
  RUN(refused_growth);
  RUN(runs_across_segments);
  RUN(runs_across_segments_may_begin_with_the_last_unit);
  RUN(large_wants_grow_in_one_step);
  RUN(take_at);
  RUN(take_at_needs_open_units);
  RUN(take_at_crosses_segments);
  RUN(locked_segments_are_passed_over);
  RUN(locked_segments_are_not_purged);
  RUN(lowest_segment_with_room_first);
  RUN(segments_with_some_room_are_not_passed_over_later);
  RUN(purged_units_are_clean);
  RUN(refused_purge_keeps_units_dirty);
  RUN_UNLESS_SECURE(moved_units_are_purged_by_renewal);
  RUN_UNLESS_SECURE(moved_units_across_segments);
  RUN(purge_looks_through_all_segments);
  RUN(purge_begins_where_nobody_takes);
  RUN(random_operations);
  return test_status();
}
