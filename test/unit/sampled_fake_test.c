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
  RUN_UNLESS_SECURE(looks_give_cells_back);
  RUN_UNLESS_SECURE(a_part_in_slabs_keeps_few);
  RUN_UNLESS_SECURE(a_scope_does_not_matter);
  RUN_UNLESS_SECURE(what_is_spared_stays_sampled);
  RUN_UNLESS_SECURE(limits_hold);
  return test_status();
}
