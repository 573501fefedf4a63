#include "tell/events.h"

#include "samples.h"

enum { LARGE = 1 << 20 };

static const struct tsl_events_row *event(uint32_t number) {
  const struct tsl_events_row *row = TSL_ROW(events, number);
  CHECK(row != NULL);
  return row;
}

static void open_told(void) {
  tsl_options.sample_events = 1;
  os_fake.now_ns = 1000;
  open_homes(MEAN);
}

static void check_both(size_t bytes) {
  const struct tsl_events_row *begun = event(1), *ended = event(2);
  CHECK_EQ(begun->bytes, bytes);
  CHECK_EQ(begun->times, 1);
  CHECK_NE(begun->site, 0);
  CHECK_NE(begun->sample, 0);
  CHECK_EQ(begun->at_ns, 1000);
  CHECK_EQ(ended->bytes, 0);
  CHECK_EQ(ended->sample, begun->sample);
  CHECK_NE(ended->site, 0);
  CHECK_NE(ended->site, begun->site);
  CHECK_EQ(ended->at_ns, 1007);
  CHECK_EQ(ended->thread, begun->thread);
  CHECK_EQ(event(3)->at_ns, 0);
}

static void a_large_block_is_told_twice(void) {
  open_told();
  void *block = tsl_fast_malloc(LARGE);
  os_fake.now_ns += 7;
  tsl_fast_free(block);
  check_both(LARGE);
}

// Of many small ones the first that is sampled.
static void a_small_block_is_told_twice(void) {
  open_told();
  unsigned count = 0;
  do {
    CHECK(count < MOST);
    blocks[count++] = tsl_fast_malloc(256);
  } while (event(1)->at_ns == 0);
  os_fake.now_ns += 7;
  tsl_fast_free(blocks[count - 1]);
  check_both(256);
}

static void a_strangers_free_is_told(void) {
  open_told();
  void *block = tsl_fast_malloc(LARGE);
  unsigned count = 0;
  while (event(2)->at_ns == 0) blocks[count++] = tsl_fast_malloc(256);
  be(other);
  tsl_fast_free(blocks[count - 1]);
  CHECK_EQ(event(3)->sample, event(2)->sample);
  CHECK_NE(event(3)->site, 0);
  be(mine);
  tsl_fast_free(block);
  CHECK_EQ(event(4)->sample, event(1)->sample);
}

// Of blocks from before the first tick, whose thread may never come to one. The first one holds no
// point.
static void the_first_blocks_are_told(void) {
  tsl_options.sample_events = 1;
  tsl_options.sample_bytes = 16 * MEAN;
  homes_open((size_t)1 << 30, &mine, &other);
  blocks[0] = tsl_fast_malloc(256);
  CHECK_EQ(tsl_points_mean, 16 * MEAN);
  blocks[1] = tsl_fast_malloc(LARGE);
  CHECK_EQ(event(1)->bytes, LARGE);
}

static void nothing_is_told_unasked(void) {
  open_homes(MEAN);
  tsl_fast_free(tsl_fast_malloc(LARGE));
  CHECK_EQ(process()->samples_taken, 1);
  CHECK_EQ(tsl_mirror_tables[TSL_ROWS_events].ready, 0);
}

static void without_rows_nothing_is_told(void) {
  open_told();
  os_fake_fail_all(OS_FAKE_SHARE_MORE);
  tsl_event_allocated(1, 1, 64, 1);
  CHECK_EQ(tsl_mirror_tables[TSL_ROWS_events].ready, 0);
  os_fake_recover();
}

static void what_comes_behind_the_last_row_is_not_told(void) {
  open_told();
  for (uint32_t i = 1; i < TSL_MOST_EVENTS + 10; i++) tsl_event_allocated(i, 1, 64, 1);
  CHECK_EQ(event(1)->sample, 1);
  CHECK_EQ(event(TSL_MOST_EVENTS - 1)->sample, TSL_MOST_EVENTS - 1);
}

static void a_child_begins_with_the_first_row(void) {
  open_told();
  tsl_event_allocated(1, 1, 64, 1);
  tsl_event_allocated(2, 1, 64, 1);
  tsl_events_after_fork();
  tsl_event_allocated(3, 1, 64, 1);
  CHECK_EQ(event(1)->sample, 3);
}

int main(void) {
  RUN_UNLESS_SECURE(a_large_block_is_told_twice);
  RUN_UNLESS_SECURE(a_small_block_is_told_twice);
  RUN_UNLESS_SECURE(a_strangers_free_is_told);
  RUN_UNLESS_SECURE(the_first_blocks_are_told);
  RUN_UNLESS_SECURE(nothing_is_told_unasked);
  RUN_UNLESS_SECURE(without_rows_nothing_is_told);
  RUN_UNLESS_SECURE(what_comes_behind_the_last_row_is_not_told);
  RUN_UNLESS_SECURE(a_child_begins_with_the_first_row);
  return test_status();
}
