#include "upkeep/thin.h"

#include "cut.h"
#include "heap/cells.h"
#include "takes.h"

enum { BYTES = 64, CELL_BYTES = 64 << 10, CELL_BLOCKS = CELL_BYTES / BYTES, LEAST_PAGE = 4096 };

// A first cell of 64 KiB, so that all are of one size, and so many full ones behind a new one.
static void open_full(unsigned cells) {
  open_with((tslab_epoch_options){.first_cell_bytes = CELL_BYTES});
  alloc_many(BYTES, cells * CELL_BLOCKS + 1);
  CHECK_EQ(heap->cell_count, cells + 1);
  tsl_thin_end();
  tsl_thin_begin_turn();
}

static void free_range(unsigned from, unsigned end, unsigned keep) {
  for (unsigned i = from; i < end; i++) {
    if (blocks[i] != NULL && i % keep != 0) tsl_fast_free(blocks[i]);
    if (i % keep != 0) blocks[i] = NULL;
  }
}

static void check_kept(void) {
  for (unsigned i = 0; i < block_count; i++) {
    const unsigned char *block = blocks[i];
    for (unsigned b = 0; block != NULL && b < BYTES; b++) CHECK_EQ(block[b], 0xa5);
  }
  state_check();
}

// Where each page is one of the system's.
static size_t bytes_of(size_t pages) {
  return os_fake_page_bytes() == LEAST_PAGE ? pages * LEAST_PAGE : 0;
}

// Of a cell that is one page of the system's no half is dead.
static enum tsl_sparse_round at_most_waits(void) {
  return os_fake_page_bytes() == LEAST_PAGE ? TSL_ROUND_WAITS : TSL_ROUND_RESTS;
}

static enum tsl_sparse_round tend(void) {
  tsl_thin_begin_turn();
  return tsl_thin_tend(heap);
}

static void check_round(enum tsl_sparse_round round, size_t purged_pages) {
  CHECK_EQ(tend(), round);
  CHECK_EQ(os_fake.purged_bytes, bytes_of(purged_pages));
  check_kept();
}

static void dead_pages_go_back_at_the_second_look(void) {
  open_full(2);
  free_range(0, CELL_BLOCKS, CELL_BLOCKS);
  check_round(TSL_ROUND_WAITS, 0);
  check_round(TSL_ROUND_RESTS, 15);
  check_round(TSL_ROUND_RESTS, 15);
}

static void what_others_freed_counts(void) {
  open_full(1);
  tsl_heap_current = other;
  free_range(0, CELL_BLOCKS, CELL_BLOCKS);
  tsl_heap_current = heap;
  check_round(TSL_ROUND_WAITS, 0);
  check_round(TSL_ROUND_RESTS, 15);
}

static void dense_cells_stay(void) {
  open_full(2);
  free_range(0, CELL_BLOCKS / 2 - 1, CELL_BLOCKS);
  check_round(TSL_ROUND_RESTS, 0);
  check_round(TSL_ROUND_RESTS, 0);
}

// Half of a cell's blocks, then half of the rest.
static void each_half_is_looked_at(void) {
  open_full(1);
  free_range(0, CELL_BLOCKS / 2 + 1, CELL_BLOCKS);
  check_round(TSL_ROUND_WAITS, 0);
  check_round(TSL_ROUND_RESTS, 7);
  free_range(CELL_BLOCKS / 2, CELL_BLOCKS / 2 + 65, CELL_BLOCKS);
  check_round(TSL_ROUND_RESTS, 7);
  free_range(CELL_BLOCKS / 2, CELL_BLOCKS, CELL_BLOCKS);
  check_round(TSL_ROUND_WAITS, 7);
  check_round(TSL_ROUND_RESTS, 7 + 15);
}

// What others freed last waits for the owner; its memory does not.
static void a_cell_in_which_nothing_lives_goes_back_once(void) {
  open_full(1);
  tsl_heap_current = other;
  for (unsigned i = 0; i < CELL_BLOCKS; i++) {
    tsl_fast_free(blocks[i]);
    blocks[i] = NULL;
  }
  tsl_heap_current = heap;
  CHECK_EQ(tend(), TSL_ROUND_WAITS);
  CHECK_EQ(tend(), TSL_ROUND_RESTS);
  CHECK_EQ(os_fake.purged_bytes, CELL_BYTES);
  CHECK_EQ(tend(), TSL_ROUND_RESTS);
  CHECK_EQ(os_fake.purged_bytes, CELL_BYTES);
}

// Half of the newest cell's pages, while its owner goes on to allocate behind them.
static void the_newest_cell_gives_what_lay_in_it_before(void) {
  open_full(0);
  alloc_many(BYTES, CELL_BLOCKS / 2);
  free_range(0, CELL_BLOCKS / 2, CELL_BLOCKS);
  check_round(at_most_waits(), 0);
  alloc_many(BYTES, 8);
  check_round(TSL_ROUND_RESTS, 5);
  check_round(TSL_ROUND_RESTS, 5);
  alloc_many(BYTES, 128);
  free_range(CELL_BLOCKS / 2, block_count, 4);
  check_round(at_most_waits(), 5);
}

// Allocates a block that is dead at once, and is not cut again.
static void pass(size_t bytes) {
  void *passed = alloc(bytes), *last = alloc(16);
  tsl_fast_free(passed);
  tsl_fast_free(last);
}

// It begins anew between two looks: what is there now was not there at the first.
static void a_newest_cell_that_begins_anew_is_looked_at_anew(void) {
  enum { LARGER = 640 };  // the cell's end lies behind a block of 16
  open_full(0);
  tsl_fast_free(blocks[--block_count]);
  for (unsigned i = 0; i < CELL_BYTES / LARGER / 2; i++) pass(LARGER);
  check_round(at_most_waits(), 0);
  uint64_t restarted = home->home->own->cells.restarted;
  while (home->home->own->cells.restarted == restarted) pass(LARGER);
  alloc_many(BYTES, CELL_BLOCKS / 4);
  check_round(TSL_ROUND_RESTS, 0);
}

// Between two looks the owner cuts blocks back, as far as it may, and cuts others there.
static void what_is_cut_again_stays(void) {
  enum { BACK = TSL_CELL_MOST_BACK / BYTES, OLD = CELL_BLOCKS / 2 - BACK };
  open_full(0);
  alloc_many(BYTES, CELL_BLOCKS / 2 - 1);
  free_range(0, OLD, CELL_BLOCKS);
  check_round(at_most_waits(), 0);
  while (block_count > OLD) tsl_fast_free(blocks[--block_count]);
  CHECK_EQ(heap->cell_next - heap->cell_start, OLD * BYTES);
  alloc_many(BYTES, BACK);
  check_round(TSL_ROUND_RESTS, OLD * BYTES / LEAST_PAGE - 1);
}

// Filled up between two looks, it is an older one now.
static void a_newest_cell_that_is_left_is_looked_at_anew(void) {
  open_full(0);
  alloc_many(BYTES, CELL_BLOCKS / 2 - 1);
  free_range(0, CELL_BLOCKS / 2, CELL_BLOCKS);
  check_round(at_most_waits(), 0);
  alloc_many(BYTES, CELL_BLOCKS / 2 + 2);
  CHECK_EQ(heap->cell_count, 2);
  check_round(TSL_ROUND_RESTS, 0);
}

// A few system calls each, and each cell once.
static void many_cells_take_several_turns(void) {
  enum { CELLS = 12 };
  open_full(CELLS);
  for (unsigned cell = 0; cell < CELLS; cell++)
    free_range(cell * CELL_BLOCKS, (cell + 1) * CELL_BLOCKS, 3 * CELL_BLOCKS / 8);
  check_round(TSL_ROUND_WAITS, 0);
  unsigned turns = 1;
  for (; tend() == TSL_ROUND_GOES_ON; turns++) CHECK(turns < CELLS);
  CHECK_GE(turns, os_fake_page_bytes() == LEAST_PAGE ? 2 : 1);
  check_kept();
  check_round(TSL_ROUND_RESTS, os_fake.purged_bytes / LEAST_PAGE);
}

static void cells_of_4k_are_passed_over(void) {
  open_with((tslab_epoch_options){.threads = 64});
  alloc_many(BYTES, 200);
  CHECK_EQ(newest_bytes(), LEAST_PAGE);
  free_range(0, 190, 64);
  tsl_thin_end();
  tsl_thin_begin_turn();
  check_round(TSL_ROUND_RESTS, 0);
}

int main(void) {
  RUN_UNLESS_SECURE(dead_pages_go_back_at_the_second_look);
  RUN_UNLESS_SECURE(what_others_freed_counts);
  RUN_UNLESS_SECURE(dense_cells_stay);
  RUN_UNLESS_SECURE(each_half_is_looked_at);
  RUN_UNLESS_SECURE(a_cell_in_which_nothing_lives_goes_back_once);
  RUN_UNLESS_SECURE(the_newest_cell_gives_what_lay_in_it_before);
  RUN_UNLESS_SECURE(a_newest_cell_that_begins_anew_is_looked_at_anew);
  RUN_UNLESS_SECURE(what_is_cut_again_stays);
  RUN_UNLESS_SECURE(a_newest_cell_that_is_left_is_looked_at_anew);
  RUN_UNLESS_SECURE(many_cells_take_several_turns);
  RUN_UNLESS_SECURE(cells_of_4k_are_passed_over);
  return test_status();
}
