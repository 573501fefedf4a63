#include "memory/limit.h"

#include "base/options.h"
#include "heap/home_units.h"
#include "memory/growth.h"
#include "memory/large.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "os_fake.h"
#include "state.h"
#include "threads.h"
#include "upkeep/pool.h"

// In units: the limit, and what may be idle whatever is in use.
enum { LIMIT = 4096, SLACK = LIMIT / 64, RUNS = 16, STEP = 64, DELAY_MS = 100 };

static void open_region(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  os_fake.now_ms = 1000;
  tsl_options.purge_delay_ms = DELAY_MS;
  tsl_options.detain_ms = 0;
  tsl_options.thp = TSL_THP_NEVER;  // huge pages go back whole, however few units may
  tsl_options.soft_limit = LIMIT * (uint64_t)(TSL_UNIT_BYTES + TSL_RECORD_BYTES);
  CHECK(tsl_region_init());
}

static tsl_unit take(size_t units) {
  bool clean;
  tsl_unit first = tsl_units_take(units, 1, &clean);
  CHECK_NE(first, 0);
  return first;
}

static size_t idle(void) { return tsl_units_dirty() + tsl_unit_cache_units(); }

static void without_a_limit_nothing_happens(void) {
  open_region();
  tsl_options.soft_limit = 0;
  tsl_units_give(take(LIMIT), LIMIT);
  CHECK_EQ(tsl_limit_bytes(), 0);
  CHECK(!tsl_limit_is_near());
  CHECK_EQ(tsl_limit_excess(), 0);
  CHECK_EQ(tsl_limit_delay_ms(), DELAY_MS);
  tsl_purge_for_limit(LIMIT);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
}

static void seven_eighths_are_near(void) {
  open_region();
  take(LIMIT / 8 * 7);
  CHECK(!tsl_limit_is_near());
  CHECK_EQ(tsl_limit_delay_ms(), DELAY_MS);
  tsl_unit last = take(1);
  CHECK(tsl_limit_is_near());
  CHECK_LE(tsl_limit_delay_ms(), DELAY_MS / 10);
  tsl_options.purge_delay_ms = 0;
  CHECK_EQ(tsl_limit_delay_ms(), 0);
  tsl_units_give(last, 1);  // idle, and resident as before
  CHECK(tsl_limit_is_near());
}

static void pressure_is_as_a_near_limit(void) {
  open_region();
  tsl_options.soft_limit = 0;
  tsl_limit_set_pressed(true);
  CHECK(tsl_limit_is_near());
  CHECK_LE(tsl_limit_delay_ms(), DELAY_MS / 10);
  CHECK_EQ(tsl_limit_excess(), 0);
  tsl_limit_set_pressed(false);
  CHECK(!tsl_limit_is_near());
  CHECK_EQ(tsl_limit_delay_ms(), DELAY_MS);
}

// LI1
static void idle_memory_has_the_room_that_is_left(void) {
  open_region();
  take(LIMIT - 1000);
  tsl_unit idle_first = take(1000);
  tsl_units_give(idle_first, 1000);
  CHECK_EQ(tsl_limit_excess(), 0);
  take(1000);  // the same ones
  CHECK_EQ(idle(), 0);
  CHECK_EQ(tsl_limit_excess(), 0);
}

// LI1: beyond the limit, too, a little is idle, so that not every free is a system call.
static void beyond_the_limit_little_is_idle(void) {
  open_region();
  take(2 * LIMIT);
  tsl_unit first = take(SLACK + 1);
  tsl_units_give(first, SLACK);
  CHECK_EQ(tsl_limit_excess(), 0);
  tsl_units_give(first + SLACK, 1);
  CHECK_EQ(tsl_limit_excess(), 1 + SLACK / 2);
  tsl_purge_for_limit(1);
  CHECK_EQ(idle(), SLACK / 2);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 1);
  state_check_segments();
}

static void the_unit_cache_is_idle(void) {
  open_region();
  take(2 * LIMIT);
  tsl_unit first = take(SLACK + 1);
  for (unsigned i = 0; i <= SLACK; i++) tsl_unit_cache_give(first + i);
  CHECK_EQ(tsl_limit_excess(), 1 + SLACK / 2);
  tsl_purge_for_limit(1);
  CHECK_EQ(idle(), SLACK / 2);
}

// Each second unit stays in use: every run is one unit long.
static void a_step_is_bounded(void) {
  open_region();
  take(2 * LIMIT);
  tsl_unit first = take(1000);
  for (unsigned i = 0; i < 1000; i += 2) tsl_units_give(first + i, 1);
  tsl_purge_for_limit(1);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], RUNS);
  CHECK_EQ(idle(), 500 - RUNS);
}

static void a_step_is_as_large_as_what_was_given(void) {
  open_region();
  take(2 * LIMIT);
  tsl_units_give(take(1000), 1000);
  tsl_purge_for_limit(1);
  CHECK_EQ(idle(), 1000 - 1 - STEP);
  tsl_purge_for_limit(1000);
  CHECK_EQ(idle(), SLACK / 2);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 2);
}

// As where the program locked its memory.
static void refused_memory_is_asked_for_seldom(void) {
  open_region();
  take(2 * LIMIT);
  tsl_units_give(take(2 * SLACK), 2 * SLACK);
  os_fake_fail_all(OS_FAKE_PURGE);
  for (unsigned i = 0; i < 10; i++) tsl_purge_for_limit(1);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 1);
  os_fake.now_ms += 100;
  tsl_purge_for_limit(1);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 2);
}

static void the_next_segment_follows_one_that_was_refused(void) {
  open_region();
  tsl_unit first = take(TSL_SEGMENT_UNITS), second = take(TSL_SEGMENT_UNITS);
  tsl_units_give(first, TSL_SEGMENT_UNITS);
  tsl_units_give(second, TSL_SEGMENT_UNITS);
  size_t cursor = 0;
  os_fake_fail_next(OS_FAKE_PURGE);
  CHECK_EQ(tsl_units_purge(&cursor, 1), 0);
  size_t after_refusal = cursor;
  CHECK_NE(after_refusal, 0);
  CHECK_EQ(tsl_units_purge(&cursor, 1), 1);
  CHECK_EQ(cursor, after_refusal);
}

static void *purge_for_one(void *unused TSL_UNUSED) {
  tsl_purge_for_limit(1);
  return NULL;
}

// A segment in which another thread is at work has nothing for this one, and refused nothing.
static void a_busy_segment_refuses_nothing(void) {
  open_region();
  tsl_unit first = take(TSL_SEGMENT_UNITS);
  take(2 * LIMIT);
  tsl_units_give(first, 2 * SLACK);
  struct tsl_segment *segment = tsl_segment_at(first / TSL_SEGMENT_UNITS);
  tsl_lock_acquire(&segment->lock);
  threads_run_one(purge_for_one, NULL);
  tsl_lock_release(&segment->lock);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
  tsl_purge_for_limit(1);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 1);
}

static void the_unit_cache_drains_in_parts(void) {
  enum { CACHED = 1000, DRAINED = 512 };
  open_region();
  take(2 * LIMIT);
  tsl_unit first = take(CACHED);
  for (unsigned i = 0; i < CACHED; i++) tsl_unit_cache_give(first + i);
  tsl_purge_for_limit(CACHED);
  CHECK_EQ(tsl_unit_cache_units(), CACHED - DRAINED);
}

// Units that were idle in the unit cache were not needed since, wherever they are.
static void drained_units_were_idle_before(void) {
  enum { CACHED = 500 };
  open_region();
  take(2 * LIMIT);
  tsl_unit first = take(2 * CACHED);
  for (unsigned i = 0; i < CACHED; i++) tsl_unit_cache_give(first + 2 * i);
  tsl_units_dirty_low();
  tsl_purge_for_limit(1);
  CHECK_EQ(tsl_units_dirty(), 1 + STEP - RUNS);
  CHECK_EQ(tsl_units_dirty_low(), 1 + STEP - RUNS);
}

// As a program does that keeps far more in use than the limit: the calls are bounded by what it
// frees.
static void beyond_the_limit_calls_are_bounded(void) {
  enum { BLOCKS = 64, ROUNDS = 50 };
  open_region();
  take(2 * LIMIT);
  void *blocks[BLOCKS];
  bool clean;
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned i = 0; i < BLOCKS; i++)
      CHECK((blocks[i] = tsl_large_alloc(4 * TSL_UNIT_BYTES, 1, 7, &clean)) != NULL);
    for (unsigned i = 0; i < BLOCKS; i++) tsl_large_free(blocks[i]);
    CHECK_LE(idle(), SLACK);
  }
  uint64_t freed_units = BLOCKS * ROUNDS * 4;
  CHECK_GE(os_fake.calls[OS_FAKE_PURGE], ROUNDS);
  CHECK_LE(os_fake.calls[OS_FAKE_PURGE], freed_units / (SLACK / 2) + ROUNDS);
}

// It refuses nothing.
static void nothing_is_refused(void) {
  bool clean;
  open_region();
  take(LIMIT);
  tsl_units_give(take(SLACK + 1), SLACK + 1);
  tsl_options.soft_limit = 1;
  CHECK_NE(tsl_limit_excess(), 0);
  CHECK(tsl_large_alloc(TSL_UNIT_BYTES, 1, 7, &clean) != NULL);
  CHECK(tsl_large_alloc(1000 * TSL_UNIT_BYTES, 1, 7, &clean) != NULL);
}

// What is detained is in use for nobody, and not resident.
static void detained_units_do_not_count(void) {
  enum { UNITS = 40 };
  bool clean;
  open_region();
  tsl_options.thp = TSL_THP_NEVER;
  tsl_options.detain_ms = 1;
  void *block = tsl_large_alloc((size_t)UNITS << TSL_UNIT_LOG2, 1, 7, &clean);
  take(LIMIT / 8 * 7 - UNITS / 2);
  CHECK(tsl_limit_is_near());
  tsl_large_free(block);
  CHECK_GE(tsl_detention_units(), UNITS);
  CHECK(!tsl_limit_is_near());
}

// Near the limit a home keeps no units for itself.
static void homes_keep_nothing_near_the_limit(void) {
  open_region();
  struct tsl_home *home = tsl_home_take();
  tsl_heap_current = &home->heap;
  tsl_unit first = tsl_home_units_take(home, 1), second = tsl_home_units_take(home, 1);
  CHECK(!tsl_home_units_give(first, 1));
  take(LIMIT / 8 * 7);
  CHECK(tsl_home_units_give(second, 1));
  CHECK_EQ(home->unit_count, 1);
  CHECK_EQ(tsl_unit_cache_units(), 1);
}

// Slabs that close, and blocks that shrink.
static void what_slabs_and_blocks_give_goes_back(void) {
  enum { UNITS = 4 * SLACK };
  bool clean;
  open_region();
  struct tsl_home *home = tsl_home_take();
  tsl_heap_current = &home->heap;
  take(2 * LIMIT);
  tsl_unit units[UNITS];
  for (unsigned i = 0; i < UNITS; i++) units[i] = tsl_home_units_take(home, 1);
  for (unsigned i = 0; i < UNITS; i++) {
    tsl_home_units_give(units[i], 1);
    CHECK_LE(idle(), SLACK);
  }
  void *block = tsl_large_alloc(UNITS * TSL_UNIT_BYTES, 1, 7, &clean);
  CHECK(tsl_large_resize(block, TSL_UNIT_BYTES));
  CHECK_LE(idle(), SLACK);
}

static void what_slabs_take_sends_idle_units_back(void) {
  open_region();
  struct tsl_home *home = tsl_home_take();
  tsl_heap_current = &home->heap;
  take(LIMIT / 2);
  for (unsigned i = 0; i < LIMIT / 2; i++) tsl_unit_cache_give(take(1));
  CHECK_EQ(tsl_limit_excess(), 0);
  for (unsigned i = 0; i < SLACK; i++) CHECK_NE(tsl_home_units_take(home, 2), 0);
  CHECK_EQ(tsl_limit_excess(), 0);
}

static void what_a_block_grows_by_sends_idle_units_back(void) {
  bool clean;
  open_region();
  CHECK(tsl_region_grow(2 * LIMIT));
  take(LIMIT / 2);
  for (unsigned i = 0; i < LIMIT / 2 - 1 - TSL_SECURE; i++) tsl_unit_cache_give(take(1));
  void *block = tsl_large_alloc(TSL_UNIT_BYTES, 1, 7, &clean);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
  CHECK(tsl_large_resize(block, SLACK * TSL_UNIT_BYTES));
  CHECK_EQ(tsl_limit_excess(), 0);
  CHECK_NE(os_fake.calls[OS_FAKE_PURGE], 0);
}

// The first unit that the system gives beyond the limit sends idle ones back.
static void fresh_units_send_idle_ones_back(void) {
  open_region();
  struct tsl_home *home = tsl_home_take();
  tsl_heap_current = &home->heap;
  tsl_units_give(take(LIMIT), LIMIT);
  tsl_unit fresh = take(LIMIT / 2);  // of the idle ones
  CHECK_EQ(tsl_limit_excess(), 0);
  bool clean;
  CHECK(tsl_large_alloc(LIMIT / 2 * TSL_UNIT_BYTES + STEP * TSL_UNIT_BYTES, 1, 7, &clean) != NULL);
  CHECK_LE(idle(), LIMIT / 2);
  CHECK_LE(tsl_limit_excess(), 0);
  tsl_units_give(fresh, LIMIT / 2);
}

static void less_idle_memory_makes_a_helper_necessary(void) {
  open_region();
  CHECK_EQ(tsl_purge_much_bytes(), TSL_PURGE_MUCH_BYTES);
  take(LIMIT);
  CHECK_EQ(tsl_purge_much_bytes(), TSL_PURGE_NEAR_BYTES);
}

static void a_cgroup_sets_the_limit(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "0::/\n"},
      {"/sys/fs/cgroup/memory.max", "1073741824\n"},
      {NULL, NULL},
  };
  os_fake.files = files;
  tsl_limit_follow();
  CHECK_EQ(tsl_limit_bytes(), 0);
  CHECK_EQ(tslab_option_set("soft_limit", "cgroup"), 0);
  CHECK_EQ(tsl_limit_bytes(), (1 << 30) / 8 * 7);
  os_fake.files = NULL;
  CHECK_EQ(tslab_option_set("purge_delay_ms", "7"), 0);  // it is read with its own option only
  CHECK_EQ(tsl_limit_bytes(), (1 << 30) / 8 * 7);
  CHECK_EQ(tslab_option_set("soft_limit", "cgroup"), 0);
  CHECK_EQ(tsl_limit_bytes(), 0);
  CHECK_EQ(tsl_limit_excess(), 0);
}

int main(void) {
  RUN(without_a_limit_nothing_happens);
  RUN(seven_eighths_are_near);
  RUN(pressure_is_as_a_near_limit);
  RUN(idle_memory_has_the_room_that_is_left);
  RUN(beyond_the_limit_little_is_idle);
  RUN(the_unit_cache_is_idle);
  RUN(a_step_is_bounded);
  RUN(a_step_is_as_large_as_what_was_given);
  RUN(refused_memory_is_asked_for_seldom);
  RUN(the_next_segment_follows_one_that_was_refused);
  RUN(a_busy_segment_refuses_nothing);
  RUN(the_unit_cache_drains_in_parts);
  RUN(drained_units_were_idle_before);
  RUN_UNLESS_SECURE(beyond_the_limit_calls_are_bounded);  // it purges what is freed
  RUN(nothing_is_refused);
  RUN(detained_units_do_not_count);
  RUN(homes_keep_nothing_near_the_limit);
  RUN(what_slabs_and_blocks_give_goes_back);
  RUN(what_slabs_take_sends_idle_units_back);
  RUN(what_a_block_grows_by_sends_idle_units_back);
  RUN(fresh_units_send_idle_ones_back);
  RUN(less_idle_memory_makes_a_helper_necessary);
  RUN(a_cgroup_sets_the_limit);
  return test_status();
}
