#include "heap/cells.h"

#include "cut.h"
#include "epoch/inspect.h"
#include "heap/mixed.h"
#include "heap/total.h"
#include "takes.h"

enum { KIB = 1 << 10, LIMIT_64K = 64 * KIB };

// One block that another thread freed keeps the newest cell from starting again: it is full.
static void remote_free_in_the_newest_cell(void) {
  open_part();
  void *first = alloc(64);
  free_as(other, first);
  CHECK_EQ(tsl_cells_block_class(first), TSL_BINS);
  state_check();
  fill_newest();
  free_in_order();
  state_check();
  CHECK(cell_of(alloc(64)) == cell_of(first));  // where the last one was
  CHECK(cell_of(alloc(64)) != cell_of(first));
  CHECK_EQ(heap->cell_count, 2);
  CHECK_EQ(tsl_cell_out(cell_of(first)), 1);
  state_check();
}

// Full cells go back with their last block.
static void dead_cells_are_given_back(void) {
  open_part();
  fill_newest();
  alloc_many(64, 1);
  fill_newest();
  unsigned of_first = 4096 / 64;
  alloc(64);
  CHECK_EQ(heap->cell_count, 3);
  tsl_cell_number first = cell_of(blocks[0]);
  for (unsigned i = 0; i < of_first; i++) {
    CHECK_EQ(tsl_cell_at(first)->epoch, slot);
    tsl_fast_free(blocks[i]);
  }
  CHECK_EQ(tsl_cell_at(first)->epoch, 0);
  CHECK_EQ(heap->cell_count, 2);
  CHECK_EQ(held_bytes(), 2 * LIMIT_64K);
  CHECK_EQ(heap->cell_pages, 32);
  state_check();
  for (unsigned i = of_first; i < block_count; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(heap->cell_count, 1);
  state_check();
}

static void *alloc_apart(tsl_cell_number *cell) {
  struct tsl_change change = tsl_change_begin(heap->home);
  *cell = tsl_cells_take_apart(heap, TSL_CELL_4K);
  CHECK(*cell != 0);
  tsl_cell_at(*cell)->sample = TSL_CELL_SAMPLES;
  void *block = (void *)(tsl_cell_address(*cell) + 64);
  tsl_cells_hand_out(heap, *cell, (uintptr_t)block, takes_class(64));
  tsl_change_end(change);
  return block;
}

// They stand behind the cell that is being cut.
static void cells_apart_leave_the_newest_one(void) {
  open_part();
  void *apart[3];
  tsl_cell_number cells[3];
  alloc_many(64, 1);
  tsl_cell_number newest = heap->cells;
  for (unsigned i = 0; i < 3; i++) {
    apart[i] = alloc_apart(&cells[i]);
    CHECK_EQ(heap->cells, newest);
    CHECK_EQ(tsl_cell_at(newest)->older, cells[i]);
    state_check();
  }
  CHECK_EQ(heap->cells_oldest, cells[0]);
  tsl_fast_free(apart[1]);
  state_check();
  CHECK_EQ(heap->cell_count, 3);
  CHECK_EQ(tsl_cell_at(cells[2])->older, cells[0]);
}

// The gap between two is no part of either.
static void a_cell_apart_takes_several_blocks(void) {
  open_part();
  tsl_cell_number cell;
  char *first = alloc_apart(&cell), *second = first + 64 + 16;
  struct tsl_total total = tsl_total_of_part(heap);
  tsl_cells_hand_out(heap, cell, (uintptr_t)second, takes_class(64));
  CHECK_EQ(tsl_cell_at(cell)->blocks, 2);
  CHECK_EQ(tsl_total_of_part(heap).bytes, total.bytes + 64);
  CHECK_EQ(tsl_total_of_part(heap).objects, total.objects + 1);
  state_check();
  tsl_fast_free(first);
  CHECK_EQ(heap->cell_count, 1);
  CHECK(in_cell(second));
  tsl_fast_free(second);
  CHECK_EQ(heap->cell_count, 0);
  CHECK_EQ(heap->freed_granules, heap->cut_granules);
  CHECK_EQ(heap->gone_granules, heap->freed_granules);
  state_check();
}

static bool is_reported(struct tsl_heap *freer, void *block, const char *what) {
  static struct tsl_cells before;
  static uint8_t granules_before[TSL_GRANULES_BYTES];
  struct tsl_cells *cells = tsl_cells_at(tsl_unit_of(block));
  uint64_t freed = heap->cell_freed;
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  const uint8_t *granules = tsl_granule_at(tsl_unit_address(tsl_unit_of(block)));
  memcpy(&before, cells, sizeof before);
  memcpy(granules_before, granules, sizeof granules_before);
  capture_start();
  free_as(freer, block);
  const char *said = capture_end();
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding is not written either
  bool same = memcmp(&before, cells, sizeof before) == 0 && heap->cell_freed == freed;
  same = same && memcmp(granules_before, granules, sizeof granules_before) == 0;
  return same && capture_lines(said) == 1 && strstr(said, what) != NULL;
}

// In the newest cell and in an older one, by the owner and by others.
static void misuse_is_reported_and_changes_nothing(void) {
  open_part();
  fill_newest();
  alloc_many(512, 10);
  struct tsl_heap *freers[] = {heap, home, other, &tsl_home_empty.heap};
  void *behind = (void *)heap->cell_next;
  for (unsigned i = 0; i < 4; i++) {
    check_context_set("freer %u", i);
    for (unsigned newest = 0; newest <= 1; newest++) {
      char *block = blocks[newest ? block_count - 1 - i : i];
      CHECK(is_reported(freers[i], block + 16, "not the beginning of a block"));
      CHECK(is_reported(freers[i], block + 1, "not the beginning of a block"));
      CHECK(is_reported(freers[i], block + 8, "not the beginning of a block"));
      free_as(freers[i], block);
      CHECK(is_reported(freers[i], block, "is free already"));
      CHECK(is_reported(freers[(i + 1) % 4], block, "is free already"));
      CHECK(is_reported(freers[i], block + 24, "not the beginning of a block"));
    }
    CHECK(is_reported(freers[i], behind, "not the beginning of a block"));
    CHECK(is_reported(freers[i], (void *)(heap->cell_end - 16), "not the beginning of a block"));
  }
  state_check();
}

// The page between two cells, which is nobody's.
static void hot_cells_have_no_blocks(void) {
  open_part();
  void *block = alloc(64);
  CHECK(is_reported(heap, (char *)block + 4096, "not the beginning of a block"));
  CHECK(is_reported(other, (char *)block + 4096, "not the beginning of a block"));
  CHECK_EQ(tsl_cells_block_class((char *)block + 4096), TSL_BINS);
  state_check();
}

static void the_last_block_grows_where_it_lies(void) {
  open_part();
  char *block = alloc(100);
  memset(block, 0x5a, 100);
  CHECK(tsl_realloc(block, 1000) == block);
  CHECK_EQ(tsl_usable(block), takes(1000));
  CHECK_EQ(heap->cell_next, (uintptr_t)block + takes(1000));
  CHECK_EQ(heap->cell_blocks, 1);
  for (unsigned i = 0; i < 100; i++) CHECK_EQ(block[i], 0x5a);
  state_check();
  tsl_fast_free(block);
  CHECK_EQ(heap->cell_next, heap->cell_start);
  CHECK_EQ(tsl_total_of_part(heap).bytes, takes(1000));
}

static void other_blocks_move_to_grow(void) {
  open_part();
  void *first = alloc(100), *last = alloc(100);
  void *moved = tsl_realloc(first, 200);
  CHECK(moved != first && moved != last);
  CHECK(tsl_realloc(moved, 4096) != moved);  // which the cell has no room for
  tsl_heap_current = home;
  void *outside = tsl_realloc(last, 200);
  CHECK(outside != last);
  tsl_heap_current = heap;
  state_check();
}

// CE1: who frees in which count.
static void frees_by_other_threads(void) {
  open_part();
  fill_newest();
  alloc(64);
  const struct tsl_cell *cell = tsl_cell_at(cell_of(blocks[0]));
  uint32_t *remote = tsl_cell_remote(cell_of(blocks[0]));
  tsl_fast_free(blocks[0]);
  CHECK_EQ(cell->freed, 1);
  free_as(other, blocks[1]);
  free_as(home, blocks[2]);  // the thread itself, outside of the epoch
  free_as(&tsl_home_empty.heap, blocks[3]);
  CHECK_EQ(cell->freed, 2);
  CHECK_EQ(*remote, TSL_CELL_BIAS + 2);
  CHECK_EQ(tsl_cell_out(cell_of(blocks[0])), 64 - 4);
  for (unsigned i = 0; i < 64; i++) CHECK_EQ(tsl_cells_block_class(blocks[i]) == TSL_BINS, i < 4);
  state_check();
  for (unsigned i = 4; i < 64; i++) free_as(other, blocks[i]);
  CHECK_EQ(tsl_cell_out(cell_of(blocks[0])), 0);
  CHECK_EQ(cell->epoch, slot);  // until the thread looks at it
  state_check();
}

static void cells_of_two_epochs(void) {
  open_part();
  tslab_epoch id;
  tslab_epoch_options options = {0};
  struct tsl_heap *first = heap;
  void *one = alloc(64);
  alloc(64);
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  heap = &tsl_part_take(home->home, tsl_epoch_slot(id))->heap;
  CHECK(heap != first);
  tsl_heap_current = heap;
  void *two = alloc(64);
  CHECK(cell_of(one) != cell_of(two));
  CHECK_EQ(tsl_inspect_slot_of(one), slot);
  CHECK_EQ(tsl_inspect_slot_of(two), tsl_epoch_slot(id));
  tsl_fast_free(one);  // of the thread's other epoch
  CHECK_EQ(tsl_cell_shares_objects(first->cell_freed), 1);
  CHECK_EQ(*tsl_cell_remote(cell_of(one)), TSL_CELL_BIAS);
  state_check();
}

static void epochs_of_blocks(void) {
  open_part();
  void *cut = alloc(64), *large = tsl_malloc_large(100 * KIB, 1, NULL);
  void *in_slab = alloc(TSL_SMALL_LIMIT);
  CHECK(large != NULL);
  tsl_heap_current = home;
  void *outside = alloc(64), *large_outside = tsl_malloc_large(100 * KIB, 1, NULL);
  tsl_heap_current = heap;
  CHECK_EQ(tsl_inspect_slot_of(cut), slot);
  CHECK_EQ(tsl_inspect_slot_of(large), slot);
  CHECK_EQ(tsl_inspect_slot_of(in_slab), slot);
  CHECK_EQ(tsl_inspect_slot_of(outside), 0);
  CHECK_EQ(tsl_inspect_slot_of(large_outside), 0);
  CHECK_EQ(tsl_inspect_slot_of(NULL), 0);
  CHECK_EQ(tsl_inspect_slot_of(&slot), 0);
  state_check();
}

// No cell and no slab above the hard limit; what is in cells goes on.
static void limits_refuse(void) {
  open_with((tslab_epoch_options){.hard_limit_bytes = 4096 + LIMIT_64K});
  alloc(64);
  fill_newest();
  alloc(64);
  fill_newest();
  CHECK_EQ(held_bytes(), 4096 + LIMIT_64K);
  CHECK_REFUSED(tsl_fast_malloc(64), ENOMEM);
  CHECK_REFUSED(tsl_fast_malloc(TSL_SMALL_LIMIT), ENOMEM);
  CHECK(heap->refused);
  CHECK(heap->cell_class);
  CHECK(tsl_mixed_aligned(heap, takes_class(64), 64) == NULL);
  CHECK_EQ(held_bytes(), 4096 + LIMIT_64K);
  CHECK_EQ(heap->cell_count, 2);
  CHECK_EQ(heap->slab_count, 0);
  state_check();
}

static void no_memory_for_a_cell(void) {
  open_part();
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_mixed_refill(heap, 0) == NULL);
  CHECK(tsl_mixed_aligned(heap, 0, 64) == NULL);
  CHECK_REFUSED(tsl_fast_malloc(64), ENOMEM);
  CHECK_EQ(held_bytes(), 0);
  CHECK(!heap->refused);
  CHECK_EQ(home->home->changing, 0);
  os_fake_recover();
  CHECK(in_cell(alloc(64)));
  state_check();
}

int main(void) {
  RUN_UNLESS_SECURE(remote_free_in_the_newest_cell);
  RUN_UNLESS_SECURE(dead_cells_are_given_back);
  RUN_UNLESS_SECURE(cells_apart_leave_the_newest_one);
  RUN_UNLESS_SECURE(a_cell_apart_takes_several_blocks);
  RUN_UNLESS_SECURE(misuse_is_reported_and_changes_nothing);
  RUN_UNLESS_SECURE(hot_cells_have_no_blocks);
  RUN_UNLESS_SECURE(the_last_block_grows_where_it_lies);
  RUN_UNLESS_SECURE(other_blocks_move_to_grow);
  RUN_UNLESS_SECURE(frees_by_other_threads);
  RUN_UNLESS_SECURE(cells_of_two_epochs);
  RUN(epochs_of_blocks);
  RUN_UNLESS_SECURE(limits_refuse);
  RUN_UNLESS_SECURE(no_memory_for_a_cell);
  return test_status();
}
