#include "base/options.h"
#include "capture.h"
#include "epoch/close.h"
#include "epochs.h"
#include "os_fake.h"
#include "threads.h"

enum { BYTES = 100, SOME = 10, MANY = 3000, EPOCHS = 40, MIB = 1 << 20 };

static void *blocks[MANY];

static void check_over(tslab_epoch epoch) {
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void fill_everywhere(tslab_epoch epoch) {
  static const size_t sizes[] = {0, 24, 1000, 5000, 9000, 30000, 70000, MIB};
  for (unsigned i = 0; i < 400; i++) epochs_alloc(epoch, sizes[i % 8]);
}

static void release_ends_all_objects(void) {
  tslab_epoch with_cells = epochs_open();
  tslab_epoch without = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  fill_everywhere(with_cells);
  fill_everywhere(without);
  CHECK_EQ(tslab_epoch_release(with_cells), 0);
  CHECK(epochs_is_over(with_cells));
  CHECK_EQ(tslab_epoch_release(without), 0);
  check_over(without);
}

static void *release_it(void *epoch) {
  CHECK_EQ(tslab_epoch_release(*(tslab_epoch *)epoch), 0);
  return NULL;
}

static void any_thread_releases(void) {
  tslab_epoch epoch = epochs_open();
  fill_everywhere(epoch);
  threads_run_one(release_it, &epoch);
  check_over(epoch);
}

static void count_run(void *count) { ++*(unsigned *)count; }

static void release_ends_children(void) {
  tslab_epoch root = epochs_open(), child = EPOCHS_OPEN(.parent = root);
  tslab_epoch brother = EPOCHS_OPEN(.parent = root), grandchild = EPOCHS_OPEN(.parent = child);
  tslab_epoch closed = EPOCHS_OPEN(.parent = grandchild), stranger = epochs_open();
  tslab_epoch family[] = {root, child, brother, grandchild, closed};
  unsigned count = 0;
  for (int i = 0; i < 5; i++) fill_everywhere(family[i]);
  for (int i = 0; i < 5; i++) CHECK_EQ(tslab_epoch_defer(family[i], count_run, &count), 0);
  void *kept = epochs_alloc(stranger, BYTES);
  epochs_close(closed, 400);
  CHECK_EQ(count, 1);
  CHECK_EQ(epochs_stats(root).children, 2);
  CHECK_EQ(tslab_epoch_release(root), 0);
  CHECK_EQ(count, 5);
  for (int i = 0; i < 5; i++) CHECK(epochs_is_over(family[i]));
  CHECK_EQ(epochs_stats(stranger).live_objects, 1);
  epochs_free(kept, BYTES);
  epochs_close(stranger, 0);
  epochs_check_all_free();
}

static void release_of_a_closed_parent_ends_children(void) {
  tslab_epoch parent = epochs_open(), child = EPOCHS_OPEN(.parent = parent);
  fill_everywhere(child);
  epochs_close(parent, 0);
  CHECK_EQ(tslab_epoch_release(parent), 0);
  CHECK(epochs_is_over(child));
  check_over(parent);
}

static void release_of_a_closed_parent_that_holds_nothing_ends_children(void) {
  tslab_epoch parent = epochs_open(), child = EPOCHS_OPEN(.parent = parent);
  epochs_close(parent, 0);
  CHECK_EQ(epochs_stats(child).state, TSLAB_OPEN);
  CHECK_EQ(tslab_epoch_release(parent), 0);
  CHECK(epochs_is_over(child));
  check_over(parent);
}

// What survives in cells, slabs and large blocks is found again.
static void release_after_close(void) {
  tslab_epoch with_cells = epochs_open();
  tslab_epoch without = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  fill_everywhere(with_cells);
  fill_everywhere(without);
  epochs_alloc_many(blocks, with_cells, BYTES, MANY);
  epochs_close(with_cells, 400 + MANY);
  epochs_free_many(blocks, BYTES, MANY / 2);
  epochs_alloc_many(blocks, without, BYTES, MANY);
  epochs_close(without, 400 + MANY);
  CHECK_EQ(tslab_epoch_release(with_cells), 0);
  CHECK(epochs_is_over(with_cells));
  CHECK_EQ(tslab_epoch_release(with_cells), ESTALE);
  CHECK_EQ(epochs_stats(without).live_objects, 400 + MANY);
  epochs_free_many(blocks, BYTES, MANY / 2);
  CHECK_EQ(epochs_stats(without).live_objects, 400 + MANY - MANY / 2);
  CHECK_EQ(tslab_epoch_release(without), 0);
  check_over(without);
}

// Frees of objects that ended with their epoch.
static void *late_block;
static void free_late(void) { tslab_free(late_block); }

static void check_late_free(void *block) {
  size_t units = tsl_units_free() + state_cached_units();
  late_block = block;
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  free_late();
  CHECK_EQ(capture_lines(capture_end()), 1);
  CHECK(strstr(capture_text, "free(") != NULL);
  CHECK_EQ(tsl_units_free() + state_cached_units(), units);
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  CHECK(capture_aborts(free_late));
}

static void late_frees_are_reported(size_t first_cell_bytes, size_t bytes) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(blocks, epoch, bytes, 2 * SOME);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  for (int i = 0; i < SOME; i++) check_late_free(blocks[i]);
  epochs_check_all_free();
  for (int i = SOME; i < 2 * SOME; i++) check_late_free(blocks[i]);
  epochs_check_all_free();
}
static void late_frees_of_cells(void) { late_frees_are_reported(0, BYTES); }
static void late_frees_of_slabs(void) { late_frees_are_reported(TSLAB_NO_CELLS, BYTES); }
static void late_frees_of_large_blocks(void) { late_frees_are_reported(0, 100000); }

static void double_frees_after_the_close_are_reported(void) {
  for (int cells = 0; cells < 2; cells++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells != 0 ? 0 : TSLAB_NO_CELLS);
    epochs_alloc_many(blocks, epoch, BYTES, SOME);
    epochs_close(epoch, SOME);
    epochs_free(blocks[4], BYTES);
    check_late_free(blocks[4]);
    CHECK_EQ(epochs_stats(epoch).live_objects, SOME - 1);
    blocks[4] = blocks[SOME - 1];
    epochs_free_many(blocks, BYTES, SOME - 1);
    check_over(epoch);
  }
}

// Another thread is inside while the epoch ends.
static tslab_epoch contested;
static pthread_barrier_t meeting;

static void *stay_inside(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, contested);
  blocks[0] = epochs_alloc(contested, BYTES);
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(tslab_epoch_current(), contested);
  if (epochs_stats(contested).state == TSLAB_CLOSED) {
    CHECK(pattern_is(blocks[0], BYTES, BYTES, BYTES));
    blocks[1] = tslab_malloc(BYTES);
    CHECK_EQ(tslab_epoch_of(blocks[1]), contested);
  }
  epochs_leave(&scope);
  return unused;
}

static void end_with_somebody_inside(bool release) {
  pthread_t thread;
  contested = epochs_open();
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, 2), 0);
  CHECK_EQ(pthread_create(&thread, NULL, stay_inside, NULL), 0);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(release ? tslab_epoch_release(contested) : tslab_epoch_close(contested).error, 0);
  CHECK(!epochs_is_over(contested));
  pthread_barrier_wait(&meeting);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void close_with_somebody_inside(void) {
  end_with_somebody_inside(false);
  CHECK_EQ(epochs_stats(contested).live_objects, 2);
  for (int i = 0; i < 2; i++) tslab_free(blocks[i]);
  check_over(contested);
}

static void release_with_somebody_inside(void) {
  end_with_somebody_inside(true);
  check_over(contested);
}

static void close_then_release_with_somebody_inside(void) {
  tslab_scope scope;
  tslab_epoch epoch = epochs_open();
  epochs_enter(&scope, epoch);
  fill_everywhere(epoch);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(tslab_epoch_release(epoch), EBUSY);
  CHECK(!epochs_is_over(epoch));
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  check_over(epoch);
}

int main(void) {
  RUN(release_ends_all_objects);
  RUN(any_thread_releases);
  RUN(release_ends_children);
  RUN(release_of_a_closed_parent_ends_children);
  RUN(release_of_a_closed_parent_that_holds_nothing_ends_children);
  RUN(release_after_close);
  RUN(late_frees_of_cells);
  RUN(late_frees_of_slabs);
  RUN(late_frees_of_large_blocks);
  RUN(double_frees_after_the_close_are_reported);
  RUN(close_with_somebody_inside);
  RUN(release_with_somebody_inside);
  RUN(close_then_release_with_somebody_inside);
  return test_status();
}
