#include "epoch/poison.h"

#include "base/options.h"
#include "base/tools.h"
#include "capture.h"
#include "epochs.h"
#include "os_fake.h"
#include "threads.h"

// A cell is as large as any page.
enum { BYTES = 100, LARGE = 200000, MANY = 2000, CELL_BYTES = 1 << 16 };

static void *blocks[MANY];
static char *ended;

static void start(void) {
  os_fake.limit_bytes = (size_t)1 << 29;
  os_fake.now_ms = 1000;
  tsl_options.release = TSL_RELEASE_POISON;
}

static tslab_epoch released(size_t bytes, size_t first_cell_bytes) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(blocks, epoch, bytes, 10);
  ended = blocks[0];
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  return epoch;
}

static void others_are_released(unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    char *before = ended;
    (void)released(BYTES, CELL_BYTES);
    ended = before;
  }
}

static void read_ended(void) { (void)*(volatile char *)ended; }
static void write_ended(void) { *(volatile char *)ended = 1; }
static bool stops(void (*use)(void)) { return capture_child(use) != 0; }
// Where a tool watches it stops the use of what has gone back.
static bool is_open(void (*use)(void)) { return tsl_tools_watch || !stops(use); }

static void check_waits_and_goes(size_t bytes, size_t first_cell_bytes) {
  start();
  tslab_epoch epoch = released(bytes, first_cell_bytes);
  others_are_released(TSL_POISON_EPOCHS - 1);
  CHECK(stops(read_ended) && stops(write_ended));
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_RELEASED);
  others_are_released(1);
  CHECK(epochs_is_over(epoch));
  CHECK(is_open(read_ended) && is_open(write_ended));
}

static void cells_wait(void) { check_waits_and_goes(BYTES, CELL_BYTES); }
static void slabs_wait(void) { check_waits_and_goes(BYTES, TSLAB_NO_CELLS); }
static void large_blocks_wait(void) { check_waits_and_goes(LARGE, 0); }

static int count_one(void *block, size_t bytes, void *context) {
  (void)block, (void)bytes;
  ++*(size_t *)context;
  return 0;
}

static size_t walked(tslab_epoch epoch) {
  size_t count = 0;
  CHECK_EQ(tslab_epoch_blocks_each(epoch, count_one, &count), 0);
  return count;
}

static size_t live_in_cleanup, walked_in_cleanup;

static void look_in_cleanup(void *context) {
  live_in_cleanup = epochs_stats(*(tslab_epoch *)context).live_objects;
  walked_in_cleanup = walked(*(tslab_epoch *)context);
}

// Of ten objects and two large ones one each is kept. Cleanups find all of them.
static void check_kept_are_counted(size_t first_cell_bytes) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(blocks, epoch, BYTES, 10);
  void *large = tslab_epoch_malloc(epoch, LARGE);
  CHECK_EQ(tslab_epoch_keep(blocks[3]), 0);
  CHECK_EQ(tslab_epoch_keep(large), 0);
  CHECK(tslab_epoch_malloc(epoch, LARGE) != NULL);
  CHECK_EQ(tslab_epoch_defer(epoch, look_in_cleanup, &epoch), 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(live_in_cleanup, 12);
  CHECK_EQ(walked_in_cleanup, 12);
  CHECK_EQ(epochs_stats(epoch).live_objects, 2);
  CHECK_EQ(walked(epoch), 2);
}

static void kept_objects_alone_are_counted(void) { check_kept_are_counted(CELL_BYTES); }
static void kept_objects_in_slabs_alone_are_counted(void) {
  check_kept_are_counted(TSLAB_NO_CELLS);
}

// What a reset ended waits in an epoch of its own; the one that was reset goes on, empty.
static void reset(tslab_epoch epoch, size_t bytes) {
  epochs_alloc_many(blocks, epoch, bytes, 10);
  ended = blocks[0];
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.state, TSLAB_OPEN);
  CHECK_EQ(stats.live_objects, 0);
  CHECK_EQ(stats.held_bytes, 0);
  state_check();
}

static void check_reset_waits(size_t bytes, size_t first_cell_bytes) {
  start();
  tslab_epoch parent = epochs_open();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes, .parent = parent);
  reset(epoch, bytes);
  size_t held = epochs_stats(parent).held_bytes;
  CHECK(held != 0);
  CHECK(stops(read_ended) && stops(write_ended));
  CHECK_EQ(tslab_epoch_keep(ended), ECANCELED);
  char *first = ended;
  reset(epoch, bytes);
  CHECK(ended != first && stops(read_ended));
  CHECK_EQ(epochs_stats(parent).held_bytes, 2 * held);
  for (unsigned i = 0; i < 2 * TSL_POISON_EPOCHS; i++) reset(epoch, bytes);
  CHECK_EQ(epochs_stats(parent).held_bytes, TSL_POISON_EPOCHS * held);
  CHECK_EQ(tslab_epoch_release(parent), 0);
  others_are_released(3 * TSL_POISON_EPOCHS);
  CHECK(epochs_is_over(parent));
}

static void cells_of_a_reset_wait(void) { check_reset_waits(BYTES, CELL_BYTES); }
static void slabs_of_a_reset_wait(void) { check_reset_waits(BYTES, TSLAB_NO_CELLS); }
static void large_blocks_of_a_reset_wait(void) { check_reset_waits(LARGE, 0); }

// Who is inside, and the caller may be, goes on in fresh memory.
static void a_reset_from_inside_waits(void) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = CELL_BYTES);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (unsigned i = 0; i < 3; i++) {
    ended = tslab_malloc(BYTES);
    CHECK_EQ(tslab_epoch_reset(epoch), 0);
    CHECK(stops(read_ended));
    *(volatile char *)tslab_malloc(BYTES) = 1;
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
  }
  epochs_leave(&scope);
  epochs_close(epoch, 1);
}

// Of twenty objects and two large ones two and one are kept; these alone live on, where they were.
static void check_kept_stay(size_t first_cell_bytes) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(blocks, epoch, BYTES, 20);
  void *large = tslab_epoch_malloc(epoch, LARGE);
  ended = tslab_epoch_malloc(epoch, LARGE);
  CHECK_EQ(tslab_epoch_keep(blocks[3]), 0);
  CHECK_EQ(tslab_epoch_keep(blocks[12]), 0);
  CHECK_EQ(tslab_epoch_keep(large), 0);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  CHECK(stops(read_ended));
  CHECK_EQ(epochs_stats(epoch).live_objects, 3);
  CHECK_EQ(walked(epoch), 3);
  epochs_free(blocks[3], BYTES);
  epochs_free(blocks[12], BYTES);
  tslab_free(large);
  CHECK_EQ(epochs_stats(epoch).live_objects, 0);
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void kept_objects_outlive_a_reset(void) { check_kept_stay(CELL_BYTES); }
static void kept_objects_in_slabs_outlive_a_reset(void) { check_kept_stay(TSLAB_NO_CELLS); }

// Below a parent that has ended no epoch opens in which the objects could wait.
static void below_a_closed_parent_nothing_waits(void) {
  start();
  tslab_epoch parent = epochs_open(), epoch = EPOCHS_OPEN(.parent = parent);
  epochs_close(parent, 0);
  epochs_alloc_many(blocks, epoch, BYTES, 10);
  ended = blocks[0];
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  CHECK_EQ(epochs_stats(epoch).live_objects, 0);
  CHECK(is_open(read_ended));
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(parent));
}

// The system has no memory for the record of another epoch.
static void without_a_record_nothing_waits(void) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = CELL_BYTES);
  epochs_alloc_many(blocks, epoch, BYTES, 10);
  ended = blocks[0];
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tslab_epoch_open("test", NULL) != TSLAB_NO_EPOCH) continue;
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  os_fake_recover();
  CHECK_EQ(epochs_stats(epoch).live_objects, 0);
  CHECK(is_open(read_ended));
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void *allocate_inside(void *epoch) {
  tslab_scope scope;
  epochs_enter(&scope, *(tslab_epoch *)epoch);
  ended = tslab_malloc(BYTES);
  epochs_leave(&scope);
  return NULL;
}

// Objects of a thread that left, and has ended.
static void check_others_wait(size_t first_cell_bytes) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(blocks, epoch, BYTES, 10);
  threads_run_one(allocate_inside, &epoch);
  char *of_other = ended;
  CHECK_EQ(epochs_stats(epoch).live_objects, 11);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  CHECK_EQ(epochs_stats(epoch).live_objects, 0);
  CHECK(stops(read_ended));
  ended = blocks[0];
  CHECK(stops(read_ended));
  state_check();
  others_are_released(TSL_POISON_EPOCHS);
  CHECK(is_open(read_ended));
  ended = of_other;
  CHECK(is_open(read_ended));
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void cells_of_other_threads_wait(void) { check_others_wait(CELL_BYTES); }
static void slabs_of_other_threads_wait(void) { check_others_wait(TSLAB_NO_CELLS); }

// What waited would use the limit up.
static void under_a_hard_limit_nothing_waits(void) {
  start();
  tslab_epoch parent = EPOCHS_OPEN(.hard_limit_bytes = 4 * CELL_BYTES);
  tslab_epoch epoch = EPOCHS_OPEN(.parent = parent, .first_cell_bytes = CELL_BYTES);
  for (unsigned i = 0; i < 16; i++) {
    epochs_alloc_many(blocks, epoch, BYTES, 10);
    CHECK_EQ(tslab_epoch_reset(epoch), 0);
    CHECK_EQ(epochs_stats(parent).held_bytes, 0);
  }
}

// One that holds nothing but what was kept takes no place from one that waits.
static void a_reset_of_nothing_waits_for_nothing(void) {
  start();
  tslab_epoch epoch = released(BYTES, CELL_BYTES), keeps = EPOCHS_OPEN(.first_cell_bytes = 4096);
  CHECK_EQ(tslab_epoch_keep(epochs_alloc(keeps, BYTES)), 0);
  for (unsigned i = 0; i < 2 * TSL_POISON_EPOCHS; i++) CHECK_EQ(tslab_epoch_reset(keeps), 0);
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_RELEASED);
}

// Of several slabs one holds what is kept.
static void slabs_beside_kept_objects_wait(void) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  ended = blocks[MANY - 1];
  CHECK_EQ(tslab_epoch_keep(blocks[0]), 0);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  CHECK(stops(read_ended));
  CHECK_EQ(epochs_stats(epoch).live_objects, 1);
  state_check();
  epochs_free(blocks[0], BYTES);
  epochs_close(epoch, 0);
}

static void survivors_of_a_close_wait(void) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = CELL_BYTES);
  ended = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(stops(read_ended));
  others_are_released(TSL_POISON_EPOCHS);
  CHECK(epochs_is_over(epoch));
}

static void what_waits_is_held(void) {
  start();
  tslab_epoch parent = epochs_open(), epoch = EPOCHS_OPEN(.parent = parent);
  epochs_alloc(epoch, BYTES);
  size_t held = epochs_stats(parent).held_bytes;
  CHECK(held != 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(epochs_stats(parent).held_bytes, held);
  others_are_released(TSL_POISON_EPOCHS);
  CHECK_EQ(epochs_stats(parent).held_bytes, 0);
}

// A thread that is inside goes on; its memory waits from when it leaves.
static void who_is_inside_goes_on(void) {
  start();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = CELL_BYTES);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  ended = tslab_malloc(BYTES);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  others_are_released(TSL_POISON_EPOCHS);
  *ended = 1;
  CHECK(!epochs_is_over(epoch));
  epochs_leave(&scope);
  others_are_released(2 * TSL_POISON_EPOCHS);
  CHECK(epochs_is_over(epoch));
}

static void where_the_system_refuses_it_only_waits(void) {
  start();
  os_fake_fail_all(OS_FAKE_GUARD);
  tslab_epoch epoch = released(BYTES, CELL_BYTES);
  os_fake_recover();
  CHECK(!stops(read_ended));
  others_are_released(TSL_POISON_EPOCHS);
  CHECK(epochs_is_over(epoch));
}

static void what_stays_inaccessible_waits_on(void) {
  start();
  tslab_epoch epoch = released(BYTES, CELL_BYTES);
  others_are_released(TSL_POISON_EPOCHS - 1);
  os_fake_fail_all(OS_FAKE_GUARD);
  others_are_released(1);
  os_fake_recover();
  CHECK(!epochs_is_over(epoch));
  others_are_released(2 * TSL_POISON_EPOCHS);
  CHECK(epochs_is_over(epoch));
}

static void without_the_option_nothing_waits(void) {
  start();
  tsl_options.release = TSL_RELEASE_REUSE;
  tslab_epoch epoch = released(BYTES, CELL_BYTES);
  CHECK(epochs_is_over(epoch) && is_open(read_ended));
}

int main(void) {
  RUN(cells_wait);
  RUN(slabs_wait);
  RUN(large_blocks_wait);
  RUN_UNLESS_SECURE(kept_objects_alone_are_counted);
  RUN(kept_objects_in_slabs_alone_are_counted);
  RUN(cells_of_a_reset_wait);
  RUN(slabs_of_a_reset_wait);
  RUN(large_blocks_of_a_reset_wait);
  RUN(a_reset_from_inside_waits);
  RUN_UNLESS_SECURE(kept_objects_outlive_a_reset);
  RUN(kept_objects_in_slabs_outlive_a_reset);
  RUN(below_a_closed_parent_nothing_waits);
  RUN(without_a_record_nothing_waits);
  RUN(cells_of_other_threads_wait);
  RUN(slabs_of_other_threads_wait);
  RUN(under_a_hard_limit_nothing_waits);
  RUN(a_reset_of_nothing_waits_for_nothing);
  RUN(slabs_beside_kept_objects_wait);
  RUN(survivors_of_a_close_wait);
  RUN(what_waits_is_held);
  RUN(who_is_inside_goes_on);
  RUN(where_the_system_refuses_it_only_waits);
  RUN(what_stays_inaccessible_waits_on);
  RUN(without_the_option_nothing_waits);
  return test_status();
}
