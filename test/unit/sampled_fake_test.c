#include "heap/sampled.h"

#include <string.h>

#include "heap/cells.h"
#include "samples.h"

static void aligned_blocks_of_epochs_stay_aligned(void) {
  enum { COUNT = 2000, ALIGNMENT = 1024 };
  open_homes(MEAN);
  tslab_epoch epoch = epochs_open();
  for (unsigned i = 0; i < COUNT; i++) {
    void *block = tslab_epoch_aligned_alloc(epoch, ALIGNMENT, 100);
    CHECK_EQ((uintptr_t)block % ALIGNMENT, 0);
  }
  CHECK_GE(totals().live, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
}

static bool is_sampled(const void *block) {
  tsl_cell_number cell = tsl_is_cell(tsl_class_around(block)) ? tsl_cells_of(block) : 0;
  return cell != 0 && tsl_cell_at(cell)->sample != 0 && *tsl_cell_sample_of(cell, block) != 0;
}

// The sampled ones of the first `count` blocks go to the front. Returns how many.
static unsigned find_sampled(unsigned count) {
  unsigned found = 0;
  for (unsigned i = 0; i < count; i++)
    if (is_sampled(blocks[i])) blocks[found++] = blocks[i];
  return found;
}

static void small_blocks_share_cells(void) {
  enum { COUNT = 20000, BYTES = 64, A_CELL = 4096 / (BYTES + BYTES) };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  CHECK_GE(sampled, 5 * A_CELL);
  CHECK_EQ(totals().live, sampled);
  CHECK_LE(mine->cell_count, sampled / (A_CELL - 1) + 1);
  state_check();
  for (; sampled != 0; sampled--) {
    CHECK_EQ((uintptr_t)blocks[sampled - 1] % BYTES, 0);
    tsl_fast_free(blocks[sampled - 1]);
    CHECK_EQ(totals().live, sampled - 1);
  }
  CHECK_EQ(mine->cell_count, 0);
  state_check();
}

static void each_heap_has_cells_of_its_own(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_homes(MEAN);
  tslab_epoch epochs[2] = {epochs_open(), epochs_open()};
  for (unsigned i = 0; i < COUNT; i++) blocks[i] = tslab_epoch_malloc(epochs[i % 2], BYTES);
  CHECK_EQ(tslab_epoch_release(epochs[0]), 0);
  uint64_t live = totals().live;
  CHECK_GE(live, 1);
  for (unsigned i = 1; i < COUNT; i += 2) tsl_fast_free(blocks[i]);
  CHECK_EQ(totals().live, 0);
  CHECK_EQ(tslab_epoch_release(epochs[1]), 0);
}

// The program has written before its block, where the number of the sample stands.
static void no_sample_of_another_block_ends(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  CHECK_GE(sampled, 2);
  const uint32_t *other_number = tsl_cell_sample_of(tsl_cells_of(blocks[1]), blocks[1]);
  *tsl_cell_sample_of(tsl_cells_of(blocks[0]), blocks[0]) = *other_number;
  tsl_fast_free(blocks[0]);
  CHECK_EQ(totals().live, sampled);
  CHECK(is_sampled(blocks[1]));
  tsl_fast_free(blocks[1]);
  CHECK_EQ(totals().live, sampled - 1);
}

static void a_second_free_ends_no_sample(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_homes(MEAN);
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  for (unsigned i = 0; i < 2; i++) {
    tsl_fast_free(blocks[0]);
    tsl_fast_free(blocks[0]);
    CHECK_EQ(totals().live, sampled - 1);
    be(other);
  }
  state_check();
}

// Looks find them one after the other, however many live on before them.
static void looks_give_cells_back(void) {
  enum { COUNT = 4000, BYTES = 4096 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  uint32_t before = mine->cell_count;
  be(other);
  for (unsigned i = COUNT / 2; i < COUNT; i++) tsl_fast_free(blocks[i]);
  be(mine);
  for (unsigned i = 0; i < before; i++) tsl_cells_look(mine->home, TSL_CELLS_FEW);
  CHECK_EQ(mine->cell_count, totals().live);
  CHECK(mine->cell_count < before);
  state_check();
}

// A part in slabs hears by nothing else that another thread freed them.
static void a_part_in_slabs_keeps_few(void) {
  enum { ROUNDS = 100, COUNT = 200, BYTES = 1024 };
  open_homes(MEAN);
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    epochs_alloc_many(blocks, epoch, BYTES, COUNT);
    be(other);
    epochs_free_many(blocks, BYTES, COUNT);
    be(mine);
  }
  CHECK_GE(process()->samples_taken, 1000);
  CHECK_EQ(totals().live, 0);
  const struct tsl_heap *part = tsl_heap_at(mine->home->family);
  CHECK_EQ(part->epoch, tsl_epoch_slot(epoch));
  CHECK_LE(part->cell_count, COUNT);
  state_check();
}

// The owner frees them in a scope, too.
static void a_scope_does_not_matter(void) {
  enum { COUNT = 4000, BYTES = 1024 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  tslab_scope scope;
  epochs_enter(&scope, epochs_open());
  free_all(COUNT, BYTES);
  epochs_leave(&scope);
  CHECK_EQ(mine->cell_count, 0);
  CHECK_EQ(totals().live, 0);
}

// A kept block stays sampled when its epoch ends, until it is freed; the samples of others end.
static void what_is_spared_stays_sampled(void) {
  enum { COUNT = 2000, BYTES = 1024 };
  open_homes(MEAN);
  for (int nth = 1; nth <= 2; nth++) {
    tslab_epoch epoch = epochs_open();
    epochs_alloc_many(blocks, epoch, BYTES, COUNT);
    for (unsigned i = 0; i < COUNT; i += (unsigned)nth) CHECK_EQ(tslab_epoch_keep(blocks[i]), 0);
    uint64_t before = totals().live;
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    if (nth == 1) CHECK_EQ(totals().live, before);
    if (nth == 2) CHECK(totals().live != 0 && totals().live < before);
    for (unsigned i = 0; i < COUNT; i += (unsigned)nth) epochs_free(blocks[i], BYTES);
    CHECK_EQ(totals().live, 0);
    CHECK(epochs_is_over(epoch));
  }
}

static void limits_hold(void) {
  enum { LIMIT = 1 << 20 };
  open_homes(MEAN);
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = LIMIT);
  while (tslab_epoch_malloc(epoch, 1000) != NULL)
    CHECK_LE(tsl_epoch_at(tsl_epoch_slot(epoch))->held_bytes, LIMIT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

int main(void) {
  RUN_UNLESS_SECURE(aligned_blocks_of_epochs_stay_aligned);
  RUN_UNLESS_SECURE(small_blocks_share_cells);
  RUN_UNLESS_SECURE(each_heap_has_cells_of_its_own);
  RUN_UNLESS_SECURE(no_sample_of_another_block_ends);
  RUN_UNLESS_SECURE(a_second_free_ends_no_sample);
  RUN_UNLESS_SECURE(looks_give_cells_back);
  RUN_UNLESS_SECURE(a_part_in_slabs_keeps_few);
  RUN_UNLESS_SECURE(a_scope_does_not_matter);
  RUN_UNLESS_SECURE(what_is_spared_stays_sampled);
  RUN_UNLESS_SECURE(limits_hold);
  return test_status();
}
