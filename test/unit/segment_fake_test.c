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

int main(void) {
  RUN(neighbours_meet);
  RUN(best_fit);
  RUN(runs_cross_words);
  RUN(least_dirty_since_asked);
  RUN(broken_segments_are_found);
  RUN(torn_segments_are_mended);
  return test_status();
}
