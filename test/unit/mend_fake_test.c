#include "state/mend.h"

#include "alloc/malloc.h"
#include "heap/part.h"
#include "heap/valid.h"
#include "homes.h"
#include "state/bin.h"

enum { COUNT = 5 };

static struct tsl_heap *mine, *other;
static void *blocks[COUNT];

static void open_homes(void) { homes_open((size_t)1 << 28, &mine, &other); }

static void alloc_and_free(size_t bytes) {
  for (unsigned i = 0; i < COUNT; i++) blocks[i] = tsl_fast_malloc(bytes);
  for (unsigned i = 0; i < COUNT; i++) tsl_fast_free(blocks[i]);
}

static uint64_t allocations(size_t bytes) {
  unsigned class = tsl_sizeclass_of(bytes);
  uint64_t at_hand =
      tsl_bin_ahead(&mine->bins[class]) + tsl_stock_blocks(&mine->store->stocks[class]);
  return mine->store->allocations[class] - at_hand;
}

static void whole_bins_stay(void) {
  open_homes();
  alloc_and_free(64);
  mine->bins[tsl_sizeclass_of(64)].room++;  // the fork came before it was counted
  tsl_heap_mend(mine);
  CHECK(tsl_heap_valid(mine));
  CHECK_EQ(tsl_heap_hot_blocks(mine, tsl_sizeclass_of(64)), COUNT);
  CHECK(tsl_fast_malloc(64) == blocks[COUNT - 1]);
}

// The fork came when the head's mark was taken, and the head not yet.
static void the_last_pop_did_not_happen(void) {
  open_homes();
  alloc_and_free(64);
  mine->bins[tsl_sizeclass_of(64)].head->mark = 0;
  tsl_heap_mend(mine);
  CHECK(tsl_heap_valid(mine));
  CHECK_EQ(tsl_heap_hot_blocks(mine, tsl_sizeclass_of(64)), COUNT);
  CHECK(tsl_fast_malloc(64) == blocks[COUNT - 1]);
}

// Somebody wrote to a freed block.
static void bins_with_broken_links_are_given_up(void) {
  open_homes();
  alloc_and_free(64);
  ((struct tsl_free_block *)blocks[3])->link = 0;  // itself
  alloc_and_free(96);
  ((struct tsl_free_block *)blocks[2])->mark = UINT64_C(0x4141414141414141);
  tsl_heap_mend(mine);
  CHECK(tsl_heap_valid(mine));
  CHECK_EQ(tsl_heap_hot_blocks(mine, tsl_sizeclass_of(64)), 0);
  CHECK_EQ(tsl_heap_hot_blocks(mine, tsl_sizeclass_of(96)), 0);
}

// The thread may have been about to take one of them.
static void stocks_are_given_up(void) {
  open_homes();
  alloc_and_free(64);
  uint32_t out = tsl_tally_out(&mine->store->tallies[tsl_sizeclass_of(64)]);
  tsl_heap_mend(mine);
  CHECK_EQ(tsl_stock_blocks(&mine->store->stocks[tsl_sizeclass_of(64)]), 0);
  CHECK_EQ(allocations(64), COUNT);
  CHECK_EQ(tsl_tally_out(&mine->store->tallies[tsl_sizeclass_of(64)]), out);
}

static void no_count_is_below_zero(void) {
  open_homes();
  alloc_and_free(64);
  mine->store->allocations[tsl_sizeclass_of(64)] -= 64;  // the handful was not counted yet
  tsl_heap_mend(mine);
  CHECK_EQ(allocations(64), 0);
}

// The fork came when the last allocation before the next look was counted down, and no further.
static void the_next_look_comes(void) {
  open_homes();
  alloc_and_free(64);
  mine->bins[tsl_sizeclass_of(64)].until = UINT32_MAX;
  uint64_t before = allocations(64);
  tsl_heap_mend(mine);
  CHECK_EQ(mine->bins[tsl_sizeclass_of(64)].until, 0);
  CHECK(tsl_heap_valid(mine));
  CHECK_EQ(allocations(64), before);
  CHECK(tsl_fast_malloc(64) != NULL);
  CHECK_EQ(allocations(64), before + 1);
}

// The fork came when a block was marked in its cell, and the end of the blocks did not move.
static void a_mark_behind_the_blocks_is_taken_off(void) {
  open_homes();
  tslab_epoch id;
  tslab_epoch_options options = {0};
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  struct tsl_heap *part = &tsl_part_take(mine->home, tsl_epoch_slot(id))->heap;
  tsl_heap_current = part;
  const uint8_t *block = tsl_granule_at((uintptr_t)tsl_fast_malloc(64));
  uint8_t *behind = tsl_granule_at(part->cell_next);
  *behind = *block;
  tsl_heap_mend(part);
  CHECK_EQ(*behind, 0);
  CHECK_EQ(*block, tsl_granule_byte(tsl_sizeclass_of(64)));
}

int main(void) {
  RUN_UNLESS_SECURE(a_mark_behind_the_blocks_is_taken_off);
  RUN_UNLESS_SECURE(the_next_look_comes);
  RUN_UNLESS_SECURE(whole_bins_stay);
  RUN_UNLESS_SECURE(the_last_pop_did_not_happen);
  RUN_UNLESS_SECURE(bins_with_broken_links_are_given_up);
  RUN_UNLESS_SECURE(stocks_are_given_up);
  RUN_UNLESS_SECURE(no_count_is_below_zero);
  return test_status();
}
