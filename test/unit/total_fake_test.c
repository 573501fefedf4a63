#include "heap/total.h"

#include "epochs.h"
#include "os_fake.h"
#include "takes.h"
#include "threads.h"

enum { BYTES = 100, LARGE = 1 << 18, BLOCKS = 100, STEPS = 6000, MANY = 3000 };

static const size_t kinds[] = {0, TSLAB_NO_CELLS};  // of first cells

static void open_region(void) { os_fake.limit_bytes = (size_t)1 << 29; }

static void check_total(tslab_epoch epoch, uint64_t objects, uint64_t bytes) {
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.allocated_objects, objects);
  CHECK_EQ(stats.allocated_bytes, bytes);
}

// Small and large blocks, while the epoch is open and after it was closed.
static void every_allocation_is_counted(void) {
  open_region();
  for (int kind = 0; kind < 2; kind++) {
    void *blocks[BLOCKS] = {NULL};
    uint64_t seed = 3, objects = 0, bytes = 0;
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind]);
    check_total(epoch, 0, 0);
    for (int i = 0; i < STEPS; i++) {
      void **block = &blocks[test_random_below(&seed, BLOCKS)];
      tslab_free(*block);
      *block = tslab_epoch_malloc(epoch, (size_t)1 << test_random_below(&seed, 18));
      objects++;
      bytes += takes_of(*block);
      if (i % 300 == 0) check_total(epoch, objects, bytes);
    }
    tslab_epoch_close(epoch);
    check_total(epoch, objects, bytes);
    for (int i = 0; i < BLOCKS; i++) {
      if (i + 1 == BLOCKS) check_total(epoch, objects, bytes);
      tslab_free(blocks[i]);
    }
    CHECK(epochs_is_over(epoch));
  }
}

static void a_reset_keeps_it(void) {
  open_region();
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind]);
    for (uint64_t round = 1; round <= 4; round++) {
      for (int i = 0; i < MANY; i++) epochs_alloc(epoch, BYTES);
      check_total(epoch, round * MANY, round * MANY * takes(BYTES));
      CHECK_EQ(tslab_epoch_reset(epoch), 0);
      check_total(epoch, round * MANY, round * MANY * takes(BYTES));
      CHECK_EQ(epochs_stats(epoch).live_objects, 0);
    }
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
}

static void growth_counts_once(void) {
  open_region();
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, LARGE);
  check_total(epoch, 1, LARGE);
  block = tslab_realloc(block, (size_t)4 * LARGE);
  check_total(epoch, 1, 4 * (uint64_t)LARGE);
  block = tslab_realloc(block, LARGE);
  check_total(epoch, 1, 4 * (uint64_t)LARGE);
  CHECK_EQ(epochs_stats(epoch).live_bytes, LARGE);
  tslab_free(block);
}

static void nothing_is_inherited(void) {
  open_region();
  tslab_epoch epoch = epochs_open();
  tslab_free(epochs_alloc(epoch, LARGE));
  tslab_free(epochs_alloc(epoch, BYTES));
  CHECK_GE(epochs_stats(epoch).peak_bytes, LARGE);
  epochs_close(epoch, 0);
  tslab_epoch next = epochs_open();
  CHECK_EQ(tsl_epoch_slot(next), tsl_epoch_slot(epoch));
  check_total(next, 0, 0);
  CHECK_EQ(epochs_stats(next).peak_bytes, 0);
}

static void the_default_epoch_has_none(void) {
  open_region();
  tslab_free(tslab_malloc(BYTES));
  tslab_free(tslab_malloc(LARGE));
  check_total(TSLAB_DEFAULT, 0, 0);
  CHECK_EQ(epochs_stats(TSLAB_DEFAULT).peak_bytes, 0);
}

static tslab_epoch crowded;
static pthread_barrier_t all_inside;

// Each thread stays inside until the epoch has ended, and seals its own part.
static void *allocate_inside(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, crowded);
  for (int i = 0; i < MANY; i++) CHECK(tslab_malloc(BYTES) != NULL);
  pthread_barrier_wait(&all_inside);
  pthread_barrier_wait(&all_inside);
  epochs_leave(&scope);
  return unused;
}

static void *close_outside(void *unused) {
  pthread_barrier_wait(&all_inside);
  tslab_epoch_close(crowded);
  check_total(crowded, (uint64_t)THREADS * MANY, (uint64_t)THREADS * MANY * takes(BYTES));
  pthread_barrier_wait(&all_inside);
  return unused;
}

static void threads_add_theirs(void) {
  pthread_t closer;
  open_region();
  crowded = epochs_open();
  CHECK_EQ(pthread_barrier_init(&all_inside, NULL, THREADS + 1), 0);
  CHECK_EQ(pthread_create(&closer, NULL, close_outside, NULL), 0);
  threads_run(allocate_inside, NULL);
  pthread_join(closer, NULL);
  check_total(crowded, (uint64_t)THREADS * MANY, (uint64_t)THREADS * MANY * takes(BYTES));
  CHECK_EQ(tslab_epoch_release(crowded), 0);
}

int main(void) {
  RUN(every_allocation_is_counted);
  RUN(a_reset_keeps_it);
  RUN(growth_counts_once);
  RUN(nothing_is_inherited);
  RUN(the_default_epoch_has_none);
  RUN(threads_add_theirs);
  return test_status();
}
