// What may be kept, and what becomes of the mark; spare_fake_test.c is about the ends.
#include "epoch/keep.h"

#include <errno.h>

#include "epochs.h"
#include "memory/kept.h"
#include "os_fake.h"
#include "threads.h"
#include "told.h"
#include "upkeep/reports.h"

enum { BYTES = 100, LARGE = 200000, FEW = 20, MANY = 3000 };

static void *blocks[MANY];
static const size_t cells[] = {0, 65536, TSLAB_NO_CELLS};

static void keep(const void *block) { CHECK_EQ(tslab_epoch_keep(block), 0); }

static void what_is_no_block_is_refused(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    char *block = epochs_alloc(epoch, BYTES), *other = epochs_alloc(epoch, BYTES);
    char *large = epochs_alloc(epoch, LARGE);
    int local = 0;
    CHECK_EQ(tslab_epoch_keep(NULL), EFAULT);
    CHECK_EQ(tslab_epoch_keep(&local), EFAULT);
    CHECK_EQ(tslab_epoch_keep(block + 16), EFAULT);
    CHECK_EQ(tslab_epoch_keep(block + 1), EFAULT);
    CHECK_EQ(tslab_epoch_keep(large + 16), EFAULT);
    epochs_close(epoch, 3);
    epochs_free(other, BYTES);
    CHECK_EQ(tslab_epoch_keep(other), EFAULT);
    epochs_free(block, BYTES);
    epochs_free(large, LARGE);
    CHECK_EQ(tslab_epoch_keep(large), EFAULT);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
  CHECK_EQ(tsl_region.has_kept, 0);
}

static void handles_are_refused(void) {
  tslab_epoch epoch = epochs_open();
  CHECK_EQ(tslab_epoch_keep(tslab_handle_alloc(epoch, BYTES).block), EFAULT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

// No release ends them: there is nothing to mark.
static void blocks_that_nothing_ends_stay_as_they_are(void) {
  tslab_epoch shared = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  void *plain = tslab_malloc(BYTES), *large = tslab_malloc(LARGE);
  void *block = epochs_alloc(shared, BYTES), *nothing = tslab_malloc(0);
  keep(plain);
  keep(large);
  keep(block);
  keep(nothing);
  CHECK_EQ(tsl_region.has_kept, 0);
  CHECK_EQ(tslab_epoch_release(shared), ENOTSUP);
  tslab_free(plain);
  tslab_free(large);
  tslab_free(nothing);
  epochs_free(block, BYTES);
}

static void memory_may_be_out(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  os_fake_fail_next(OS_FAKE_COMMIT);
  CHECK_EQ(tslab_epoch_keep(block), ENOMEM);
  CHECK_EQ(tsl_region.has_kept, 0);
  keep(block);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  epochs_free(block, BYTES);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

// In the epoch and afterwards. Memory that is handed out again is kept no more.
static void a_free_ends_the_mark(void) {
  static const size_t sizes[] = {16, BYTES, 1000, 5000, 20000, LARGE};
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 6; k++) {
      tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
      tslab_scope scope;
      epochs_enter(&scope, epoch);
      for (int round = 0; round < FEW; round++) {
        epochs_alloc_many(blocks, epoch, sizes[k], FEW);
        for (int at = 0; at < FEW; at++) keep(blocks[at]);
        epochs_free_many(blocks, sizes[k], FEW);
      }
      epochs_alloc_many(blocks, epoch, sizes[k], FEW);
      epochs_leave(&scope);
      state_check();
      CHECK_EQ(epochs_stats(epoch).live_objects, FEW);
      CHECK_EQ(tslab_epoch_release(epoch), 0);
      CHECK(epochs_is_over(epoch));
      epochs_check_all_free();
    }
  }
}

// The memory of a sealed slab is handed out again as soon as its last block is free.
static void a_free_after_a_close_ends_the_mark(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(blocks, epoch, BYTES, FEW);
    for (int at = 0; at < FEW; at++) keep(blocks[at]);
    epochs_close(epoch, FEW);
    epochs_free_many(blocks, BYTES, FEW / 2);
    state_check();
    epochs_free_many(blocks + FEW / 2, BYTES, FEW / 2);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

static void *free_it(void *block) {
  epochs_free(block, BYTES);
  return NULL;
}
static void *keep_it(void *block) {
  keep(block);
  return NULL;
}

static void other_threads_keep_and_free(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(blocks, epoch, BYTES, FEW);
    for (int at = 0; at < FEW; at++) threads_run_one(keep_it, blocks[at]);
    for (int at = 0; at < FEW; at += 2) threads_run_one(free_it, blocks[at]);
    CHECK_EQ(epochs_stats(epoch).live_objects, FEW / 2);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(epochs_stats(epoch).live_objects, FEW / 2);
    for (int at = 1; at < FEW; at += 2) threads_run_one(free_it, blocks[at]);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

// Its record has belonged to an epoch that kept blocks.
static void a_later_epoch_of_the_slot_keeps_nothing(void) {
  uint32_t slot = 0;
  for (int i = 0; i < FEW; i++) {
    tslab_epoch epoch = epochs_open();
    CHECK(i == 0 || tsl_epoch_slot(epoch) == slot);
    slot = tsl_epoch_slot(epoch);
    CHECK(!tsl_epoch_keeps(slot));
    void *block = epochs_alloc(epoch, BYTES);
    keep(block);
    CHECK(tsl_epoch_keeps(slot));
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    epochs_free(block, BYTES);
    CHECK(epochs_is_over(epoch));
  }
}

// Of a slot whose epochs come and go there are many: no count of them begins anew.
static void a_slot_may_be_used_for_long(void) {
  tslab_epoch epoch = epochs_open();
  uint32_t slot = tsl_epoch_slot(epoch);
  epochs_close(epoch, 0);
  tsl_epoch_at(slot)->word = (((uint64_t)1 << 32) - 2) << TSL_EPOCH_STATE_BITS | TSL_EPOCH_FREE;
  for (int i = 0; i < 4; i++) {
    epoch = epochs_open();
    CHECK_EQ(tsl_epoch_slot(epoch), slot);
    CHECK(!tsl_epoch_keeps(slot));
    epochs_alloc(epoch, BYTES);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
  CHECK_EQ(tsl_region.has_kept, 0);
}

static void realloc_keeps(void) {
  static const size_t sizes[] = {BYTES, 3000, 20000, LARGE, 1 << 20};
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    void *block = epochs_alloc(epoch, 50);
    keep(block);
    for (int k = 0; k < 5; k++) block = tslab_realloc(block, sizes[k]);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    tslab_free(block);
    CHECK(epochs_is_over(epoch));
  }
  epochs_check_all_free();
}

// What lives in the parent's account moves there.
static void realloc_of_what_was_spared(void) {
  tslab_epoch parent = epochs_open(), epoch = EPOCHS_OPEN(.parent = parent);
  void *once = epochs_alloc(epoch, BYTES), *twice = epochs_alloc(epoch, BYTES);
  keep(once);
  keep(twice);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  keep(twice);
  once = tslab_realloc(once, 3000);
  twice = tslab_realloc(twice, 3000);
  CHECK(tslab_epoch_of(once) == parent && tslab_epoch_of(twice) == parent);
  CHECK(epochs_is_over(epoch));
  CHECK_EQ(tslab_epoch_release(parent), 0);
  CHECK_EQ(epochs_stats(parent).live_objects, 1);
  tslab_free(twice);
  CHECK(epochs_is_over(parent));
}

// No later end of the same epoch ends it, and there is no ancestor.
static void realloc_after_a_reset(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  keep(block);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  block = tslab_realloc(block, 3000);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(epochs_is_over(epoch));
  tslab_free(block);
}

static void realloc_of_what_was_spared_twice(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch parent = epochs_open();
    tslab_epoch epoch = EPOCHS_OPEN(.parent = parent, .first_cell_bytes = cells[i]);
    void *block = epochs_alloc(epoch, BYTES);
    keep(block);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    keep(block);
    CHECK_EQ(tslab_epoch_reset(parent), 0);
    block = tslab_realloc(block, 3000);
    CHECK_EQ(tslab_epoch_reset(parent), 0);
    CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_release(parent), 0);
    CHECK(epochs_is_over(parent));
    tslab_free(block);
  }
  epochs_check_all_free();
}

// Its own epoch is open, and ends before the parent does.
static void realloc_of_what_a_reset_spared_and_the_parent_shall(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch parent = epochs_open();
    tslab_epoch epoch = EPOCHS_OPEN(.parent = parent, .first_cell_bytes = cells[i]);
    void *block = epochs_alloc(epoch, BYTES);
    keep(block);
    CHECK_EQ(tslab_epoch_reset(epoch), 0);
    keep(block);
    block = tslab_realloc(block, 3000);
    CHECK_EQ(tslab_epoch_release(parent), 0);
    CHECK_EQ(tslab_epoch_of(block), parent);
    CHECK(epochs_is_over(epoch));
    tslab_free(block);
    CHECK(epochs_is_over(parent));
  }
  epochs_check_all_free();
}

// The parent has ended before the thread's part in the epoch: only a free ends what that spares. To
// end the parent from there is a mistake, which is reported elsewhere.
static void realloc_of_what_was_spared_late(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch parent = epochs_open(), epoch = EPOCHS_OPEN(.parent = parent);
  tslab_scope outer, inner;
  epochs_enter(&outer, parent);
  epochs_enter(&inner, epoch);
  void *block = tslab_malloc(BYTES);
  keep(block);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(tslab_epoch_release(parent), 0);
  epochs_leave(&inner);
  block = tslab_realloc(block, 3000);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  epochs_leave(&outer);
  CHECK(epochs_is_over(epoch) && epochs_is_over(parent));
  tslab_free(block);
}

// What a thread allocates inside after the release ends as it leaves, moved or not.
static void realloc_inside_a_released_epoch(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    void *block = tslab_realloc(tslab_malloc(10), 5000);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    epochs_leave(&scope);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

static void realloc_keeps_inside_a_released_epoch(void) {
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    void *block = tslab_malloc(BYTES);
    keep(block);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    block = tslab_realloc(block, 5000);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    epochs_leave(&scope);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    tslab_free(block);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

static void check_faces(tslab_epoch epoch, size_t objects) {
  struct told told = told_of_epoch(tsl_epoch_slot(epoch));
  CHECK_EQ(told.objects, objects);
  CHECK_EQ(epochs_stats(epoch).live_objects, objects);
  CHECK_EQ(told.bytes, epochs_stats(epoch).live_bytes);
}

// Each face counts each block once: before and after it is kept, spared and freed, by whomever.
static void statistics_agree(void) {
  static const size_t sizes[] = {16, BYTES, 3000, LARGE};
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  tslab_free(tslab_malloc(1));
  tsl_report_start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    tslab_scope scope;
    for (int k = 0; k < FEW; k++) blocks[k] = epochs_alloc(epoch, sizes[k % 4]);
    check_faces(epoch, FEW);
    for (int k = 0; k < FEW; k += 2) keep(blocks[k]);
    for (int k = 0; k < FEW; k += 2) keep(blocks[k]);
    check_faces(epoch, FEW);
    epochs_enter(&scope, epoch);
    epochs_free(blocks[0], sizes[0]);
    epochs_leave(&scope);
    epochs_free(blocks[2], sizes[2]);
    check_faces(epoch, FEW - 2);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    check_faces(epoch, FEW / 2 - 2);
    for (int k = 4; k < FEW - 2; k += 2) epochs_free(blocks[k], sizes[k % 4]);
    check_faces(epoch, 1);
    epochs_free(blocks[FEW - 2], sizes[(FEW - 2) % 4]);
    CHECK(epochs_is_over(epoch));
    CHECK_EQ(told_of_epoch(tsl_epoch_slot(epoch)).objects, 0);
  }
}

static void statistics_agree_after_a_close(void) {
  tslab_free(tslab_malloc(1));
  tsl_report_start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(blocks, epoch, BYTES, FEW);
    for (int k = 0; k < FEW; k += 2) keep(blocks[k]);
    CHECK_EQ(epochs_close(epoch, FEW).bytes, epochs_stats(epoch).live_bytes);
    check_faces(epoch, FEW);
    keep(blocks[1]);
    epochs_free(blocks[0], BYTES);
    epochs_free(blocks[3], BYTES);
    check_faces(epoch, FEW - 2);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    check_faces(epoch, FEW / 2);
    epochs_free(blocks[1], BYTES);
    for (int k = 2; k < FEW; k += 2) epochs_free(blocks[k], BYTES);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

int main(void) {
  RUN(what_is_no_block_is_refused);
  RUN(handles_are_refused);
  RUN(blocks_that_nothing_ends_stay_as_they_are);
  RUN(memory_may_be_out);
  RUN(a_free_ends_the_mark);
  RUN(a_free_after_a_close_ends_the_mark);
  RUN(other_threads_keep_and_free);
  RUN(a_later_epoch_of_the_slot_keeps_nothing);
  RUN(a_slot_may_be_used_for_long);
  RUN(realloc_keeps);
  RUN(realloc_of_what_was_spared);
  RUN(realloc_after_a_reset);
  RUN(realloc_of_what_was_spared_twice);
  RUN(realloc_of_what_a_reset_spared_and_the_parent_shall);
  RUN(realloc_of_what_was_spared_late);
  RUN(realloc_inside_a_released_epoch);
  RUN(realloc_keeps_inside_a_released_epoch);
  RUN(statistics_agree);
  RUN(statistics_agree_after_a_close);
  return test_status();
}
