#include "heap/loose.h"

#include "blocks.h"
#include "heap/cells.h"
#include "heap/remote.h"
#include "heap/warm.h"
#include "memory/purge.h"
#include "state.h"
#include "state/change.h"
#include "takes.h"
#include "upkeep/pool.h"
#include "upkeep/tick.h"

enum { CLASS_BYTES = 512, BLOCKS = 8192, FREED_BYTES = CLASS_BYTES * BLOCKS };
enum { LOOK_BYTES = 256 << 10, PAGE_BYTES = 4096 };
enum { CELL_BYTES = 64 << 10, CELLS = 3, PARTS = 20 };
enum { PIECE_BYTES = TSL_LOOSE_GRANULES << TSL_GRANULE_LOG2 };  // of a part, told at once

static struct tsl_heap *heap, *other;

static void open_heaps(void) {
  blocks_open((size_t)1 << 27, &heap, &other);
  tsl_tend_is_possible = true;
  tsl_options.helper = TSL_HELPER_AUTO;
}

static size_t loose_bytes(void) { return tsl_purge_returnable_bytes() - tsl_purge_idle_bytes(); }

// One of two stays, so that no slab becomes empty.
static void free_half(void) {
  for (unsigned i = 0; i < block_count; i += 2) tsl_fast_free(blocks[i]);
}

static void free_blocks_of_slabs_are_loose(void) {
  open_heaps();
  alloc_many(CLASS_BYTES, BLOCKS);
  CHECK_EQ(loose_bytes(), 0);
  free_half();
  CHECK_EQ(heap->home->loosened, 1);
  CHECK_GE(loose_bytes(), FREED_BYTES / 2 - 2 * LOOK_BYTES);
  CHECK_LE(loose_bytes(), FREED_BYTES / 2);
  tsl_loose_take(heap->home);
  CHECK_EQ(loose_bytes(), 0);
}

// So many of every second block, behind `before` that were freed.
static unsigned frees_until_told(unsigned before) {
  unsigned freed = 0;
  for (; loose_bytes() == 0; freed++) tsl_fast_free(blocks[2 * (before + freed)]);
  return freed;
}

// To add up what is free asks each part. No more than 1 MiB waits for it, however many there are.
static void many_parts_are_added_up_seldom(void) {
  enum { SUM_BYTES = 2 * LOOK_BYTES, FREES = SUM_BYTES / CLASS_BYTES };
  open_heaps();
  heap->home->own->shared_count = SUM_BYTES / PAGE_BYTES;
  alloc_many(CLASS_BYTES, BLOCKS);
  unsigned freed = frees_until_told(0);
  CHECK_GE(freed, FREES);
  CHECK_LE(freed, 3 * FREES / 2);
  heap->home->own->shared_count = 1000 * SUM_BYTES / PAGE_BYTES;
  tsl_loose_take(heap->home);
  unsigned more = frees_until_told(freed);
  CHECK_GE(more, FREES);
  CHECK_LE(more, 3 * FREES);
  heap->home->own->shared_count = 0;
}

// What the helper has seen is not loose again.
static void a_round_begins_the_count_anew(void) {
  open_heaps();
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half();
  tsl_loose_take(heap->home);
  heap->home->rounds++;
  for (unsigned i = 1; i < block_count; i += 4) tsl_fast_free(blocks[i]);
  CHECK_LE(loose_bytes(), FREED_BYTES / 4);
  CHECK_GE(loose_bytes(), FREED_BYTES / 4 - 2 * LOOK_BYTES);
}

static void two_threads_add_up(void) {
  open_heaps();
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half();
  size_t one = loose_bytes();
  block_count = 0;
  tsl_heap_current = other;
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half();
  CHECK_GE(loose_bytes(), 2 * one - LOOK_BYTES);
}

static void free_half_as_other(void) {
  tsl_heap_current = other;
  free_half();
  tsl_remote_send_all(other->home);
  tsl_heap_current = heap;
}

// Whether the owner has collected it or not.
static void frees_of_others_are_loose(void) {
  open_heaps();
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half_as_other();
  CHECK_LE(loose_bytes(), FREED_BYTES / 2);
  CHECK_GE(loose_bytes(), FREED_BYTES / 2 - LOOK_BYTES);
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  CHECK_LE(loose_bytes(), FREED_BYTES / 2);
  CHECK_GE(loose_bytes(), FREED_BYTES / 2 - 2 * LOOK_BYTES);
}

// What a round has seen is not loose again, and what is sent after that is, although what was seen
// has been collected meanwhile.
static void a_round_sees_frees_of_others(void) {
  open_heaps();
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half_as_other();
  tsl_purge_see_sent();
  CHECK_EQ(loose_bytes(), 0);
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  tsl_loose_take(heap->home);
  heap->home->rounds++;
  block_count = 0;
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half_as_other();
  CHECK_GE(loose_bytes(), FREED_BYTES / 2 - 2 * LOOK_BYTES);
}

static void open_part(tslab_epoch *id) {
  open_heaps();
  blocks_open_part(heap, TSLAB_NO_CELLS, id);
  alloc_many(CLASS_BYTES, BLOCKS);
}

static void free_blocks_of_own_epochs_are_loose(void) {
  tslab_epoch id;
  open_part(&id);
  free_half();
  CHECK_EQ(heap->home->loosened, 1);
  CHECK_GE(loose_bytes(), FREED_BYTES / 2 - 2 * LOOK_BYTES);
  CHECK_LE(loose_bytes(), FREED_BYTES / 2);
  tsl_loose_take(heap->home);
  heap->home->rounds++;
  for (unsigned i = 1; i < block_count; i += 4) tsl_fast_free(blocks[i]);
  CHECK_GE(loose_bytes(), FREED_BYTES / 4 - 2 * LOOK_BYTES);
  CHECK_LE(loose_bytes(), FREED_BYTES / 4);
}

// What was free in the part's epoch before counts no longer, and all that is free in this one does.
static void each_life_of_a_part_counts_anew(void) {
  tslab_epoch id;
  open_part(&id);
  free_half();
  struct tsl_part *part = tsl_part_of(tsl_heap_current);
  part->heap.life++;
  for (unsigned i = 1; i < block_count; i += 4) tsl_fast_free(blocks[i]);
  CHECK_GE(loose_bytes(), FREED_BYTES / 4 * 3 - 2 * LOOK_BYTES);
  CHECK_LE(loose_bytes(), FREED_BYTES / 4 * 3);
  part->heap.life--;
}

// Parts in cells of 64 KiB, in each of which one of two blocks stays.
static void open_parts_in_cells(unsigned parts) {
  tslab_epoch id;
  open_heaps();
  for (unsigned i = 0; i < parts; i++) {
    unsigned before = block_count;
    blocks_open_part(heap, CELL_BYTES, &id);
    block_count = before;
    alloc_many(CLASS_BYTES, CELLS * CELL_BYTES / CLASS_BYTES + 1);
  }
}

enum { IN_CELLS_BYTES = PARTS * CELLS * CELL_BYTES / 2 };

// Each of which has too little to be told alone.
static void free_blocks_of_small_epochs_are_loose(void) {
  open_parts_in_cells(PARTS);
  for (unsigned i = 0; i < block_count; i += 2) {
    struct tsl_heap *part = tsl_heap_at(tsl_cell_at(tsl_cells_of(blocks[i]))->heap);
    free_as(part, blocks[i]);
  }
  CHECK_EQ(heap->home->loosened, 1);
  CHECK_GE(loose_bytes(), IN_CELLS_BYTES - PARTS * PIECE_BYTES - LOOK_BYTES);
  CHECK_LE(loose_bytes(), IN_CELLS_BYTES);
}

static void frees_in_cells_from_outside_are_loose(void) {
  open_parts_in_cells(PARTS);
  tsl_heap_current = other;
  free_half();
  CHECK_EQ(heap->home->loosened, 1);
  CHECK_LE(loose_bytes(), IN_CELLS_BYTES + PARTS * CLASS_BYTES);
  CHECK_GE(loose_bytes(), IN_CELLS_BYTES - LOOK_BYTES);
}

static void frees_by_a_thread_without_a_home_are_loose(void) {
  open_parts_in_cells(PARTS);
  tsl_heap_current = &tsl_home_empty.heap;
  free_half();
  CHECK_EQ(heap->home->loosened, 1);
  CHECK_GE(loose_bytes(), IN_CELLS_BYTES - LOOK_BYTES);
}

// By a thread that frees blocks of two others in turn: each is told, however the sums fall.
static void both_owners_hear_of_frees_in_turn(void) {
  tslab_epoch id;
  open_heaps();
  struct tsl_home *third = tsl_home_take();
  blocks_open_part(heap, CELL_BYTES, &id);
  alloc_many(CLASS_BYTES, 4);
  tsl_heap_current = other;
  blocks_open_part(other, CELL_BYTES, &id);
  blocks[1] = alloc(CLASS_BYTES);
  tsl_heap_current = &third->heap;
  for (unsigned i = 0; i < 2; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(heap->home->loosened + other->home->loosened, 2);
}

// Where all lies in the newest cell.
static void what_was_freed_in_a_scope_is_told_as_it_is_left(void) {
  tslab_epoch id;
  open_heaps();
  struct tsl_heap *part = blocks_open_part(heap, CELL_BYTES, &id);
  alloc_many(CLASS_BYTES, PIECE_BYTES / CLASS_BYTES);
  alloc(CLASS_BYTES);
  for (unsigned i = 1; i < block_count; i++) tsl_fast_free(blocks[i]);
  tsl_loose_leave(part);
  CHECK_EQ(heap->home->loosened, 0);
  tsl_fast_free(blocks[0]);
  tsl_loose_leave(part);
  CHECK_EQ(heap->home->loosened, 1);
}

// As the seal takes over what is dead in them.
static void cells_that_are_sealed_count_no_longer(void) {
  open_parts_in_cells(1);
  struct tsl_heap *part = tsl_heap_current;
  tsl_heap_current = other;
  free_half();
  ptrdiff_t sent = other->home->own->loose.sent_bytes + (ptrdiff_t)loose_bytes();
  CHECK_EQ(sent, (ptrdiff_t)((block_count + 1) / 2 * CLASS_BYTES));
  for (tsl_cell_number cell = tsl_cell_at(part->cells)->older; cell != 0;
       cell = tsl_cell_at(cell)->older)
    tsl_cells_collect(cell);
  sent = other->home->own->loose.sent_bytes + (ptrdiff_t)loose_bytes();
  CHECK_LE(sent, CLASS_BYTES);
  CHECK_GE(sent, 0);
}

// All that its thread freed in a cell goes with it.
static void cells_that_are_given_back_count_no_longer(void) {
  open_parts_in_cells(1);
  struct tsl_heap *part = tsl_heap_current;
  for (unsigned i = 0; i < CELL_BYTES / CLASS_BYTES; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(part->freed_granules, CELL_BYTES >> TSL_GRANULE_LOG2);
  CHECK_EQ(part->gone_granules, part->freed_granules);
  CHECK_EQ(loose_bytes(), 0);
}

static void what_an_ending_thread_keeps_hot_counts(void) {
  open_heaps();
  alloc_many(CLASS_BYTES, 50);
  free_many();
  tsl_loose_add_hot(heap->home);
  CHECK_EQ(loose_bytes(), 0);
  alloc_many(CLASS_BYTES, BLOCKS);
  for (unsigned i = 0; i < BLOCKS; i += BLOCKS / 32) tsl_fast_free(blocks[i]);
  heap->home->rounds++;
  tsl_loose_add_hot(heap->home);
  CHECK_EQ(loose_bytes(), PAGE_BYTES * tsl_heap_hot_blocks(heap, takes_class(CLASS_BYTES)));
}

// No more than lies in slabs.
static void blocks_that_share_pages_count_once(void) {
  open_heaps();
  size_t slabs = 0;
  for (size_t bytes = 16; bytes <= 80; bytes += 16) {
    alloc_many(bytes, 100);
    free_many();
    slabs += heap->store->tallies[takes_class(bytes)].slabs;
  }
  heap->home->rounds++;
  tsl_loose_add_hot(heap->home);
  CHECK_GE(slabs, 5);
  CHECK_EQ(loose_bytes(), slabs * TSL_UNIT_BYTES);
}

// As the thread's last tick found them.
static void warm_parts_count(void) {
  open_heaps();
  tslab_epoch id = tslab_epoch_open("warm", NULL);
  CHECK(tslab_epoch_malloc(id, CLASS_BYTES) != NULL);
  CHECK_EQ(tslab_epoch_release(id), 0);
  CHECK_EQ(loose_bytes(), 0);
  tsl_home_tick(heap->home);
  CHECK_EQ(loose_bytes(), 1 << TSL_CELL_PAGE_LOG2);
  tsl_loose_take(heap->home);
  CHECK_EQ(loose_bytes(), 0);
  tsl_warm_drop(heap->home);
  heap->home->rounds++;
  tsl_loose_add_warm(heap->home);
  CHECK_EQ(loose_bytes(), 0);
}

// Nobody would take the bytes off again.
static void without_a_helper_none_count(void) {
  open_heaps();
  tsl_tend_is_possible = false;
  alloc_many(CLASS_BYTES, BLOCKS);
  free_half();
  tsl_loose_add_hot(heap->home);
  tsl_tend_is_possible = true;
  tsl_options.helper = TSL_HELPER_NEVER;
  for (unsigned i = 1; i < block_count; i += 4) tsl_fast_free(blocks[i]);
  tsl_loose_add_hot(heap->home);
  CHECK_EQ(loose_bytes(), 0);
}

// A thread added less than the helper takes off, and has not come to add the rest.
static void the_sum_is_not_below_zero(void) {
  open_heaps();
  size_t before = tsl_purge_returnable_bytes();
  tsl_purge_loosen(LOOK_BYTES, 0);
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
  tsl_purge_loosen(0, LOOK_BYTES);
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
}

int main(void) {
  RUN_UNLESS_SECURE(free_blocks_of_slabs_are_loose);
  RUN_UNLESS_SECURE(many_parts_are_added_up_seldom);
  RUN_UNLESS_SECURE(a_round_begins_the_count_anew);
  RUN_UNLESS_SECURE(two_threads_add_up);
  RUN_UNLESS_SECURE(frees_of_others_are_loose);
  RUN_UNLESS_SECURE(a_round_sees_frees_of_others);
  RUN_UNLESS_SECURE(free_blocks_of_own_epochs_are_loose);
  RUN_UNLESS_SECURE(each_life_of_a_part_counts_anew);
  RUN_UNLESS_SECURE(what_an_ending_thread_keeps_hot_counts);
  RUN_UNLESS_SECURE(free_blocks_of_small_epochs_are_loose);
  RUN_UNLESS_SECURE(frees_in_cells_from_outside_are_loose);
  RUN_UNLESS_SECURE(frees_by_a_thread_without_a_home_are_loose);
  RUN_UNLESS_SECURE(both_owners_hear_of_frees_in_turn);
  RUN_UNLESS_SECURE(what_was_freed_in_a_scope_is_told_as_it_is_left);
  RUN_UNLESS_SECURE(cells_that_are_sealed_count_no_longer);
  RUN_UNLESS_SECURE(cells_that_are_given_back_count_no_longer);
  RUN_UNLESS_SECURE(warm_parts_count);
  RUN_UNLESS_SECURE(blocks_that_share_pages_count_once);
  RUN_UNLESS_SECURE(without_a_helper_none_count);
  RUN(the_sum_is_not_below_zero);
  return test_status();
}
