#include "cut.h"
#include "heap/mixed.h"
#include "heap/store.h"

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

// Frees the blocks of the first cell but so many, and fills it again.
static void free_all_but(unsigned count) {
  open_shared();
  fill_newest();
  CHECK_EQ(block_count, 64);
  for (unsigned i = count; i < 64; i++) tsl_fast_free(blocks[i]);
  fill_newest();
}

static void a_shared_epoch_goes_on_in_slabs_soon(void) {
  free_all_but(0);
  CHECK(!in_cell(alloc(64)));
  CHECK(!heap->cell_class);
  state_check();
}

static void sixty_three_are_too_few(void) {
  free_all_but(1);
  CHECK(in_cell(alloc(64)));
  state_check();
}

static void what_others_free_is_dead(void) {
  open_shared();
  fill_newest();
  for (unsigned i = 0; i < 32; i++) free_as(other, blocks[i]);
  alloc(64);
  CHECK_EQ(newest_bytes(), 4096);
  state_check();
}

// Each cell keeps a third of its 64 blocks. Returns how many the part has as it leaves them.
static uint32_t cells_until_slabs(void) {
  while (heap->cell_class) {
    block_count = 0;
    fill_newest();
    for (unsigned i = 22; i < block_count; i++) tsl_fast_free(blocks[i]);
    alloc(64);
  }
  return heap->cell_count;
}

static void without_a_place_cells_may_take_what_slabs_would(void) {
  open_shared();
  home->home->own->shared_in_slabs = TSL_MOST_STORES;
  CHECK_EQ(cells_until_slabs(), 48);
  state_check();
}

static void with_a_place_they_may_not(void) {
  open_shared();
  home->home->own->shared_in_slabs = TSL_MOST_STORES - 1;
  CHECK_EQ(cells_until_slabs(), 4);
  state_check();
}

// Nor where the epoch will end.
static void nor_may_those_of_their_own_epoch(void) {
  open_with((tslab_epoch_options){.threads = 9});
  tsl_store_relaxed(&home->home->stores, TSL_MOST_STORES);
  CHECK_EQ(cells_until_slabs(), 4);
  tsl_store_relaxed(&home->home->stores, 0);
  state_check();
}

// Bytes of the cell that the heap begins with after it had no use for the last one.
static size_t bytes_after_a_rest(void) {
  tsl_mixed_rest(heap);
  CHECK_EQ(heap->cell_count, 0);
  alloc_many(64, 1);
  return newest_bytes();
}

// What takes two cells takes the larger one the next time, and that for as long as it is used.
static void a_part_at_rest_knows_what_it_needs(void) {
  open_shared();
  home->home->own->shared_in_slabs = TSL_MOST_STORES;
  fill_newest();
  alloc_many(64, 1);
  CHECK_EQ(newest_bytes(), 16384);
  free_many();
  CHECK_EQ(bytes_after_a_rest(), 16384);
  alloc_many(64, 64);
  free_many();
  CHECK_EQ(bytes_after_a_rest(), 16384);
  alloc_many(64, 63);
  free_many();
  CHECK_EQ(bytes_after_a_rest(), 4096);
  state_check();
}

static void a_cell_in_use_does_not_rest(void) {
  open_shared();
  alloc_many(64, 2);
  tsl_fast_free(blocks[0]);
  tsl_mixed_rest(heap);
  CHECK_EQ(heap->cell_count, 1);
  state_check();
}

static void a_cell_that_others_emptied_rests(void) {
  open_shared();
  alloc_many(64, 3);
  tsl_fast_free(blocks[0]);
  free_as(other, blocks[1]);
  tsl_mixed_rest(heap);
  CHECK_EQ(heap->cell_count, 1);
  free_as(other, blocks[2]);
  tsl_mixed_rest(heap);
  CHECK_EQ(heap->cell_count, 0);
  CHECK_EQ(held_bytes(), 0);
  state_check();
}

static void beside_survivors_a_part_begins_small(void) {
  open_shared();
  fill_newest();
  alloc_many(64, 1);
  CHECK_EQ(newest_bytes(), 16384);
  tsl_fast_free(blocks[--block_count]);
  tsl_mixed_rest(heap);
  CHECK_EQ(heap->cell_count, 1);
  alloc(64);
  CHECK_EQ(newest_bytes(), 4096);
  state_check();
}

int main(void) {
  RUN_UNLESS_SECURE(a_cell_that_others_emptied_rests);
  RUN_UNLESS_SECURE(beside_survivors_a_part_begins_small);
  RUN_UNLESS_SECURE(a_part_at_rest_knows_what_it_needs);
  RUN_UNLESS_SECURE(a_cell_in_use_does_not_rest);
  RUN_UNLESS_SECURE(without_a_place_cells_may_take_what_slabs_would);
  RUN_UNLESS_SECURE(with_a_place_they_may_not);
  RUN_UNLESS_SECURE(nor_may_those_of_their_own_epoch);
  RUN_UNLESS_SECURE(a_shared_epoch_goes_on_in_slabs_soon);
  RUN_UNLESS_SECURE(sixty_three_are_too_few);
  RUN_UNLESS_SECURE(what_others_free_is_dead);
  RUN_UNLESS_SECURE(cells_of_a_shared_epoch_grow_with_what_lives);
  RUN_UNLESS_SECURE(cells_of_a_shared_epoch_stay_small);
  return test_status();
}
