#include "cut.h"
#include "heap/mixed.h"

static void open_shared(void) {
  tslab_epoch id;
  open_part();
  CHECK_EQ(tsl_epoch_open_shared(0, &id), 0);
  slot = tsl_epoch_slot(id);
  heap = &tsl_part_take(home->home, slot)->heap;
  tsl_heap_current = heap;
}

static void cells_of_a_shared_epoch_grow_with_what_lives(void) {
  static const size_t sizes[] = {4096, 16384, 65536, 65536};
  open_shared();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    alloc(64);
    CHECK_EQ(newest_bytes(), sizes[i]);
    block_count = 0;
    fill_newest();
    for (unsigned dead = 0; dead < 24; dead++) tsl_fast_free(blocks[dead]);
  }
  state_check();
}

// Exactly half is dead as the cell is full.
static void cells_of_a_shared_epoch_stay_small(void) {
  open_shared();
  alloc_many(64, 32);
  for (unsigned i = 0; i < 31; i++) tsl_fast_free(blocks[i]);
  block_count = 0;
  fill_newest();
  tsl_fast_free(blocks[0]);
  alloc(64);
  CHECK_EQ(newest_bytes(), 4096);
  state_check();
}

int main(void) {
  RUN_UNLESS_SECURE(cells_of_a_shared_epoch_grow_with_what_lives);
  RUN_UNLESS_SECURE(cells_of_a_shared_epoch_stay_small);
  return test_status();
}
