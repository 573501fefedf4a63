#include "heap/extent.h"

#include "epochs.h"
#include "os_fake.h"
#include "threads.h"

enum { BYTES = 100, LARGE = 1 << 18, EPOCHS = 8, BLOCKS = 60, STEPS = 4000, ROUNDS = 300 };

static void open_region(void) { os_fake.limit_bytes = (size_t)1 << 29; }

static uint32_t slot_of(tslab_epoch epoch) { return tsl_epoch_slot(epoch); }

static uint32_t units_of(tslab_epoch epoch) {
  struct tsl_extent extent = tsl_extent_of(slot_of(epoch));
  return extent.end > extent.first ? extent.end - extent.first : 0;
}

static void check_has(tslab_epoch epoch, const void *block) {
  CHECK(tsl_extent_has(slot_of(epoch), tsl_unit_of(block)));
}

static void it_begins_empty(void) {
  open_region();
  tslab_epoch epoch = epochs_open();
  CHECK_EQ(units_of(epoch), 0);
  void *small = epochs_alloc(epoch, BYTES);
  CHECK_EQ(units_of(epoch), 1);
  check_has(epoch, small);
  tslab_free(small);
  epochs_close(epoch, 0);
  tslab_epoch next = epochs_open();
  CHECK_EQ(slot_of(next), slot_of(epoch));
  CHECK_EQ(units_of(next), 0);
}

static void the_default_epoch_has_all(void) {
  open_region();
  void *block = tslab_malloc(BYTES), *large = tslab_malloc(LARGE);
  check_has(TSLAB_DEFAULT, block);
  check_has(TSLAB_DEFAULT, large);
}

// One that takes units one after the other covers no more than these.
static void it_covers_little_else(void) {
  open_region();
  tslab_epoch epoch = epochs_open();
  for (int i = 0; i < BLOCKS; i++) epochs_alloc(epoch, LARGE);
  CHECK_LE(units_of(epoch), BLOCKS * ((LARGE >> TSL_UNIT_LOG2) + TSL_SECURE));
  tslab_epoch beside = epochs_open();
  epochs_alloc(beside, BYTES);
  CHECK_EQ(units_of(beside), 1);
}

static void *held[EPOCHS][BLOCKS];

static void step(tslab_epoch epoch, void **block, uint64_t *seed) {
  size_t bytes = (size_t)1 << test_random_below(seed, 19);
  if (*block != NULL && test_random_below(seed, 2) == 0) bytes = 0;
  *block = bytes == 0 ? (tslab_free(*block), NULL) : tslab_epoch_realloc(epoch, *block, bytes);
}

// What a walk passes over is missing in the count.
static void check_all(const tslab_epoch *epochs) {
  for (size_t i = 0; i < EPOCHS; i++) {
    size_t live = 0;
    for (int at = 0; at < BLOCKS; at++) live += held[i][at] != NULL;
    CHECK_EQ(epochs_stats(epochs[i]).live_objects, live);
  }
}

// X1: cells, slabs and large blocks, new ones, moved ones, and those that a reset kept.
static void it_has_every_block(void) {
  tslab_epoch epochs[EPOCHS];
  uint64_t seed = 7;
  open_region();
  for (size_t i = 0; i < EPOCHS; i++)
    epochs[i] = EPOCHS_OPEN(.first_cell_bytes = i % 2 == 0 ? 0 : TSLAB_NO_CELLS);
  for (int i = 0; i < STEPS; i++) {
    size_t number = test_random_below(&seed, EPOCHS);
    step(epochs[number], &held[number][test_random_below(&seed, BLOCKS)], &seed);
    if (i % 500 == 0) check_all(epochs);
    if (i % 700 != 0) continue;
    CHECK_EQ(tslab_epoch_reset(epochs[number]), 0);
    memset(held[number], 0, sizeof held[number]);
  }
  check_all(epochs);
  for (size_t i = 0; i < EPOCHS; i++) tslab_epoch_close(epochs[i]);
  check_all(epochs);
  for (size_t i = 0; i < EPOCHS; i++) CHECK_EQ(tslab_epoch_release(epochs[i]), 0);
  epochs_check_all_free();
}

static tslab_epoch crowded;
static uint32_t started;

static void *grow(void *unused) {
  uint32_t mine = tsl_add_relaxed(&started, 1);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    tsl_unit low = 1000 + mine + THREADS * (ROUNDS - i), high = 10000 + mine + THREADS * i;
    tsl_extent_add(slot_of(crowded), low);
    tsl_extent_add(slot_of(crowded), high);
    CHECK(tsl_extent_has(slot_of(crowded), low) && tsl_extent_has(slot_of(crowded), high));
  }
  return unused;
}

static void threads_grow_it_together(void) {
  open_region();
  crowded = epochs_open();
  threads_run(grow, NULL);
  struct tsl_extent extent = tsl_extent_of(slot_of(crowded));
  CHECK_EQ(extent.first, 1000 + THREADS);
  CHECK_EQ(extent.end, 10000 + THREADS * ROUNDS);
}

int main(void) {
  RUN(it_begins_empty);
  RUN(the_default_epoch_has_all);
  RUN(it_covers_little_else);
  RUN(it_has_every_block);
  RUN(threads_grow_it_together);
  return test_status();
}
