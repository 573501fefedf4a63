#include "cut.h"
#include "heap/mixed.h"
#include "state/history.h"

enum { KIB = 1 << 10, MANY = 17, LABEL = 2 };

static void take_part_with(tslab_epoch_options options) {
  tslab_epoch id;
  CHECK_EQ(tsl_epoch_open(LABEL, &options, &id), 0);
  slot = tsl_epoch_slot(id);
  heap = &tsl_part_take(home->home, slot)->heap;
  tsl_heap_current = heap;
  block_count = 0;
}

// The last of so many parts of a label whose epochs never share is current.
static void open_many(int count) {
  open_part();
  tsl_history_released(LABEL);
  for (int i = 0; i < count; i++) take_part_with((tslab_epoch_options){0});
}

static void check_next_cells(unsigned count, size_t bytes) {
  for (unsigned i = 0; i < count; i++) {
    alloc(64);
    CHECK_EQ(newest_bytes(), bytes);
    fill_newest();
  }
}

static void cells_of_few_grow_at_once(void) {
  open_many(MANY - 1);
  check_next_cells(1, 4 * KIB);
  check_next_cells(2, 64 * KIB);
  state_check();
}

// One that is larger than the first is at most a quarter of all.
static void cells_of_many_grow_slowly(void) {
  open_many(MANY);
  check_next_cells(12, 4 * KIB);
  check_next_cells(9, 16 * KIB);
  check_next_cells(2, 64 * KIB);
  CHECK_EQ(held_bytes(), 12 * 4 * KIB + 9 * 16 * KIB + 2 * 64 * KIB);
  state_check();
}

static void options_hold_for_many(void) {
  open_many(MANY);
  take_part_with((tslab_epoch_options){.first_cell_bytes = 16 * KIB});
  check_next_cells(12, 16 * KIB);
  check_next_cells(1, 64 * KIB);
  take_part_with((tslab_epoch_options){.threads = 3});
  check_next_cells(12, 4 * KIB);
  check_next_cells(12, 16 * KIB);
  state_check();
}

static void large_blocks_of_many_get_large_cells(void) {
  open_many(MANY);
  CHECK_EQ(class_at(alloc(1024)), TSL_CELL_4K);
  CHECK_EQ(class_at(alloc(5000)), TSL_CELL_64K);
  state_check();
}

// Slabs would take more than these cells do.
static void who_loses_most_of_many_stays_in_cells(void) {
  enum { SLABS_PAGES = 48 };
  open_many(MANY);
  while (heap->cell_pages < SLABS_PAGES) {
    CHECK(in_cell(alloc(64)));
    fill_newest();
    for (unsigned i = 0; i < block_count; i++)
      if (i % 4 != 3) free_as(other, blocks[i]);
    block_count = 0;
  }
  CHECK(!in_cell(alloc(64)));
  state_check();
}

int main(void) {
  RUN_UNLESS_SECURE(cells_of_few_grow_at_once);
  RUN_UNLESS_SECURE(cells_of_many_grow_slowly);
  RUN_UNLESS_SECURE(options_hold_for_many);
  RUN_UNLESS_SECURE(large_blocks_of_many_get_large_cells);
  RUN_UNLESS_SECURE(who_loses_most_of_many_stays_in_cells);
  return test_status();
}
