#include "epoch/orphans.h"

#include "blocks.h"
#include "heap/remote.h"
#include "state.h"
#include "state/change.h"
#include "upkeep/collect.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// As if the thread of `heap` had forked.
static void adopt_orphans(void) {
  tsl_heap_current = heap;
  tsl_orphans_after_fork(heap->home);
  tsl_orphans_adopt();
}

static void what_has_no_thread_is_pooled(void) {
  open_heaps();
  struct tsl_heap *inside = &tsl_home_take()->heap, *pooled = &tsl_home_take()->heap;
  tsl_region_add_heap();  // as if its thread had come no further
  inside->home->changing = 1;
  other->depth = 1;  // its thread was in a guest outside of epochs
  other->name = 5;
  tsl_home_pool(pooled->home);
  adopt_orphans();
  CHECK(other->depth == 0 && other->name == TSLAB_DEFAULT);
  struct tsl_heap *first = &tsl_home_take()->heap, *second = &tsl_home_take()->heap,
                  *third = &tsl_home_take()->heap;
  CHECK(first != second && (first == other || first == pooled));
  CHECK(second == other || second == pooled);
  CHECK_EQ(third->number, 6);
}

// As if the fork had come between two stores of each fast path of the other thread.
static void torn_heaps_are_mended(void) {
  unsigned class = tsl_sizeclass_of(64);
  open_heaps();
  tsl_heap_current = other;
  alloc_many(64, 3000);
  for (unsigned i = 0; i < 3000; i += 2) tsl_fast_free(blocks[i]);
  tsl_home_collect(other->home);
  void *next = alloc(64);
  struct tsl_position position = tsl_slab_position(class, next);
  struct tsl_slab *listed = other->store->stocks[class].slabs;
  CHECK(listed != NULL && position.index >= 0);
  other->bins[class].room--;
  other->store->stocks[class].next += 64;
  listed->out++;
  CHECK(!tsl_heap_valid(other));
  adopt_orphans();
  CHECK(&tsl_home_take()->heap == other);
  CHECK(tsl_heap_valid(other));
  for (int i = 0; i < 4000; i++) {
    void *block = tsl_fast_malloc(64);
    CHECK(block != NULL && block != next);
    for (unsigned j = 1; j < 3000; j += 500) CHECK(block != blocks[j]);
  }
  state_check();
}

// As if it had come when the run's next block was handed out, but not yet counted.
static void torn_stocks_are_given_up(void) {
  open_heaps();
  tsl_heap_current = other;
  alloc_many(128, 10);
  CHECK(other->store->stocks[tsl_sizeclass_of(128)].run > 1);
  other->store->stocks[tsl_sizeclass_of(128)].next += 128;
  adopt_orphans();
  CHECK(&tsl_home_take()->heap == other);
  alloc_many(128, 500);
  for (unsigned i = 0; i < block_count; i++) *(unsigned *)blocks[i] = i;
  for (unsigned i = 0; i < block_count; i++) CHECK_EQ(*(unsigned *)blocks[i], i);
}

// What it had freed of others is sent; it may have begun to gather more.
static void what_a_lost_thread_freed_is_sent(void) {
  open_heaps();
  tsl_heap_current = heap;
  alloc_many(64, 8);
  struct tsl_position position = tsl_slab_position(tsl_sizeclass_of(64), blocks[0]);
  for (unsigned i = 0; i < 8; i++) free_as(other, blocks[i]);
  CHECK_EQ(tsl_bit_count(position.slab->remote[position.index / 64]), 1);
  other->home->own->gathers[0].round++;
  adopt_orphans();
  CHECK_EQ(tsl_bit_count(position.slab->remote[position.index / 64]), 8);
  CHECK(tsl_remote_valid(other->home));
}

// As if another thread had come half way in looking at all blocks of a part, in which nobody is.
static void parts_that_were_laid_down_are_mended(void) {
  tslab_epoch id;
  open_heaps();
  struct tsl_heap *part = blocks_open_part(heap, TSLAB_NO_CELLS, &id);
  unsigned class = tsl_sizeclass_of(64);
  alloc_many(64, 100);
  tsl_fast_free(blocks[--block_count]);
  struct tsl_stock *stock = &part->store->stocks[class];
  struct tsl_slab *slab = tsl_slab_position(class, blocks[0]).slab;
  if (slab->listed) tsl_stock_unlist(stock, slab);
  slab->listed = true;  // but it is on no list
  part->torn = TSL_HEAP_TORN;
  tsl_part_of(part)->shut = 1;
  CHECK(!tsl_heap_valid(part) || stock->slabs == NULL);
  adopt_orphans();
  CHECK_EQ(part->torn, TSL_HEAP_WHOLE);
  CHECK(!tsl_change_is_shut(tsl_part_of(part)));
  CHECK(tsl_heap_valid(part));
  CHECK(stock->slabs == slab);
  CHECK_EQ(part->home->heap.number, heap->number);
}

// A signal handler forked in the middle of a change: its thread's next refill adopts them.
static void who_was_interrupted_adopts_later(void) {
  open_heaps();
  heap->home->changing = 1;
  adopt_orphans();
  CHECK(tsl_orphans_wait);
  CHECK_EQ(other->home->hold, TSL_HOME_OWNED);
  heap->home->changing = 0;
  tsl_locks_held = 1;
  tsl_orphans_adopt();
  CHECK(tsl_orphans_wait);
  tsl_locks_held = 0;
  for (int i = 0; i < 100 && tsl_orphans_wait; i++) alloc_many(30000, 4);
  CHECK(!tsl_orphans_wait);
  CHECK(&tsl_home_take()->heap == other);
}

// The thread's own heap is not touched: it may be between two stores of a fast path.
static void what_ends_goes_by_the_remote_way(void) {
  tslab_epoch id;
  open_heaps();
  tsl_heap_current = other;
  struct tsl_heap *part = blocks_open_part(other, 0, &id);
  alloc_many(64, 1);
  part->depth = 1;
  tsl_heap_current = heap;
  alloc_many(64, 10);
  struct tsl_bin before[TSL_BINS];
  memcpy(before, heap->bins, sizeof before);
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_RELEASED), 0);
  tsl_store_relaxed(&tsl_epoch_at(tsl_epoch_slot(id))->heaps, TSL_EPOCH_ENDED);
  adopt_orphans();
  CHECK_EQ(tsl_part_of(part)->sealing, TSL_PART_SEALED);
  CHECK(memcmp(before, heap->bins, sizeof before) == 0);
  CHECK(tsl_heap_current == heap);
}

int main(void) {
  RUN(what_has_no_thread_is_pooled);
  RUN_UNLESS_SECURE(torn_heaps_are_mended);
  RUN_UNLESS_SECURE(torn_stocks_are_given_up);
  RUN_UNLESS_SECURE(parts_that_were_laid_down_are_mended);
  RUN_UNLESS_SECURE(what_a_lost_thread_freed_is_sent);
  RUN(who_was_interrupted_adopts_later);
  RUN(what_ends_goes_by_the_remote_way);
  return test_status();
}
