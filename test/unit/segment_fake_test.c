#include "memory/segment.h"

#include "state.h"
#include "threads.h"
#include "units.h"

static void neighbours_meet(void) {
  bool clean;
  open_region(SMALL);
  take_all_open();
  size_t at = tsl_region.first_unit + 10;
  tsl_units_give((tsl_unit)at, 2);
  tsl_units_give((tsl_unit)at + 3, 2);
  CHECK(!tsl_units_take_at((tsl_unit)at, 5, &clean));
  tsl_units_give((tsl_unit)at + 2, 1);
  CHECK_EQ(take(5, 1), at);
  state_check_segments();
}

static void best_fit(void) {
  open_region(SMALL);
  take_all_open();
  size_t at = tsl_region.first_unit;
  tsl_units_give((tsl_unit)at, 8);
  tsl_units_give((tsl_unit)at + 20, 3);
  tsl_units_give((tsl_unit)at + 40, 5);
  CHECK_EQ(take(3, 1), at + 20);
  CHECK_EQ(take(3, 1), at + 40);
  CHECK_EQ(take(3, 1), at);
  CHECK_EQ(take(2, 1), at + 43);
  CHECK_EQ(take(5, 1), at + 3);
  CHECK_EQ(tsl_units_free(), 0);
}

static void runs_cross_words(void) {
  open_region(SMALL);
  take_all_open();
  size_t base = tsl_round_up(tsl_region.units, 256);
  CHECK(tsl_region_grow(512));
  take_all_open();
  tsl_units_give((tsl_unit)base, 256);
  for (unsigned first = 0; first < 130; first += 13) {
    for (unsigned count = 1; first + count <= 256; count += 31) {
      CHECK_EQ(take(256, 256), base);
      tsl_units_give((tsl_unit)(base + first), count);
      CHECK_EQ(take(count, 1), base + first);
      tsl_units_give((tsl_unit)base, 256);
      state_check_segments();
    }
  }
}

static void least_dirty_since_asked(void) {
  open_region(SMALL);
  tsl_units_dirty_low();
  tsl_units_give(take(10, 1), 10);
  CHECK_EQ(tsl_units_dirty_low(), 0);
  CHECK_EQ(tsl_units_dirty_low(), 10);
  tsl_unit first = take(6, 1);
  tsl_units_give(first, 6);
  CHECK_EQ(tsl_units_dirty(), 10);
  CHECK_EQ(tsl_units_dirty_low(), 4);
  CHECK_EQ(tsl_units_dirty_low(), 10);
  tsl_units_give(take(5, 1), 5);
  tsl_units_dirty_before(5);
  CHECK_EQ(tsl_units_dirty_low(), 10);
}

// G5
static void moved_units_stay_dirty(void) {
  open_region(SMALL);
  tsl_unit first = take(100, 1);
  size_t index = first / SEGMENT;
  struct tsl_run all = {first % SEGMENT, 100}, moved = {all.first + 30, 50};
  struct tsl_run renewed = {all.first + 20, 30}, before = {all.first, 30};
  tsl_segment_mark_moved(index, moved, true);
  tsl_segment_mark_moved(index, renewed, false);
  CHECK_EQ(tsl_segments_moved_units(), 30);
  CHECK_EQ(tsl_segment_count_moved(index, all), 30);
  CHECK_EQ(tsl_segment_count_moved(index, renewed), 0);
  CHECK_EQ(tsl_segment_count_moved(index, before), 0);
  tsl_segment_give(index, all, true);
  state_check_segments();
  CHECK_EQ(take(100, 1), first);
  CHECK_EQ(tsl_segments_moved_units(), 30);
  tsl_segment_mark_moved(index, all, false);
  tsl_segment_give(index, all, false);
  CHECK_EQ(tsl_segments_moved_units(), 0);
  state_check_segments();
}

// What is purged at once is marked, or none of it is.
static void dirty_runs_are_of_one_kind(void) {
  static const struct tsl_run expected[] = {{70, 30}, {50, 20}, {30, 20}, {10, 20}, {0, 10}};
  open_region(SMALL);
  tsl_unit first = take(100, 1);
  unsigned base = first % SEGMENT;
  struct tsl_run low = {base + 10, 20}, high = {base + 50, 20}, held;
  tsl_segment_mark_moved(first / SEGMENT, low, true);
  tsl_segment_mark_moved(first / SEGMENT, high, true);
  tsl_units_give(first, 100);
  for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
    struct tsl_run run = tsl_segment_take_dirty(first / SEGMENT, SEGMENT, &held);
    CHECK_EQ(run.first - base, expected[i].first);
    CHECK_EQ(run.count, expected[i].count);
  }
}

static void broken_segments_are_found(void) {
  open_region(SMALL);
  take(100, 1);
  struct tsl_segment *segment = tsl_segment_at(first_segment()), before = *segment;
  CHECK(tsl_segment_valid(segment));
  segment->free_units++;
  CHECK(!tsl_segment_valid(segment));
  *segment = before;
  segment->longest--;
  CHECK(!tsl_segment_valid(segment));
  *segment = before;
  segment->dirty[0] = 1;  // a unit of the headers, which is never free
  CHECK(!tsl_segment_valid(segment));
  *segment = before;
  segment->free[0] ^= 1;
  CHECK(!tsl_segment_valid(segment));
  *segment = before;
  for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) segment->moved[w] = segment->free[w];
  CHECK(!tsl_segment_valid(segment));
}

// A thread took a unit, and had not counted that when a fork took it.
static void *take_a_unit_in_part(void *segment) {
  struct tsl_segment *taken = segment;
  tsl_lock_acquire(&taken->lock);
  unsigned word = tsl_region.first_unit % SEGMENT / 64;
  CHECK(taken->free[word] != 0);
  taken->free[word] &= taken->free[word] - 1;
  return NULL;
}

static void torn_segments_are_mended(void) {
  open_region(SMALL);
  struct tsl_segment *segment = tsl_segment_at(first_segment());
  threads_run_one(take_a_unit_in_part, segment);
  CHECK(!tsl_segment_valid(segment));
  tsl_segments_after_fork();
  CHECK(tsl_segment_valid(segment));
  CHECK_EQ(segment->lock.holder, 0);
}

static void moved_units_are_counted_anew(void) {
  open_region(SMALL);
  tsl_unit first = take(1, 1);
  struct tsl_run run = {first % SEGMENT, 1};
  tsl_segment_mark_moved(first / SEGMENT, run, true);
  tsl_segments_after_fork();
  CHECK_EQ(tsl_segments_moved_units(), 1);
  tsl_segment_at(first / SEGMENT)->moved[run.first / 64] = 0;  // and had not counted that
  tsl_segments_after_fork();
  CHECK_EQ(tsl_segments_moved_units(), 0);
}

int main(void) {
  RUN(neighbours_meet);
  RUN(best_fit);
  RUN(runs_cross_words);
  RUN(least_dirty_since_asked);
  RUN(moved_units_stay_dirty);
  RUN(dirty_runs_are_of_one_kind);
  RUN(broken_segments_are_found);
  RUN(torn_segments_are_mended);
  RUN(moved_units_are_counted_anew);
  return test_status();
}
