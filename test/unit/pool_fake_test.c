#include "upkeep/pool.h"

#include "blocks.h"
#include "state.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// Pooled homes take their parts with them.
static void pooled_homes_keep_their_parts(void) {
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
  tsl_part_give(tsl_part_of(part));
  tsl_home_pool(heap->home);
  tsl_heap_current = other;
  CHECK(&tsl_home_take()->heap == heap);
  tsl_heap_current = heap;
  CHECK(blocks_take_part(heap) == part);
  for (int i = 0; i < 10; i++) tsl_pool_look();
  CHECK_EQ(part->home->hold, TSL_HOME_OWNED);
  state_check();
}

static void pooled_heap_is_taken_warm(void) {
  open_heaps();
  alloc_many(64, 100);
  tsl_fast_free(blocks[9]);
  tsl_fast_free(blocks[8]);
  tsl_home_pool(heap->home);
  CHECK(&tsl_home_take()->heap == heap);
  CHECK(alloc(64) == blocks[8]);
  state_check();
}

// What others free in a pooled heap is found by those that go on, one heap a tick.
static void pooled_heaps_are_looked_at(void) {
  open_heaps();
  alloc_many(1024, 64 * 8);
  tsl_heap_current = other;
  tsl_home_pool(heap->home);
  free_many();
  CHECK_GE(state_owned_units(), 8);
  for (int i = 0; i < 64 * 64 * 6; i++) CHECK(tsl_fast_malloc(1024) != NULL || i > 64 * 64);
  CHECK_LE(state_owned_units(), 64 * 6 + 2);
  CHECK_EQ(heap->home->unit_count, 0);
  state_check();
}

// What a thread's end leaves hot goes back in time, if no other thread takes it over.
static void pooled_heaps_rest(void) {
  open_heaps();
  alloc_many(1024, 100);
  alloc_many(64, 1000);
  free_many();
  CHECK(state_owned_units() != 0);
  tsl_heap_current = other;
  tsl_home_pool(heap->home);
  for (int i = 0; i < 1000; i++) tsl_pool_look();
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

// Whoever takes a heap passes over one that somebody looks at, and leaves it in the pool.
static void pooled_heap_in_use_stays(void) {
  open_heaps();
  tsl_home_pool(heap->home);
  tsl_home_pool(other->home);
  other->home->hold = TSL_HOME_LOOKED_AT;
  CHECK(&tsl_home_take()->heap == heap);
  CHECK_EQ(tsl_home_take()->heap.number, 3);
  other->home->hold = TSL_HOME_POOLED;
  CHECK(&tsl_home_take()->heap == other);
}

// Nobody but its thread changes a heap that has one.
static void owned_heaps_are_not_looked_at(void) {
  open_heaps();
  alloc_many(1024, 200);
  free_many_as(other);
  uint64_t ready = heap->ready;
  CHECK(ready != 0);
  for (int i = 0; i < 10; i++) tsl_pool_look();
  CHECK_EQ(heap->ready, ready);
  CHECK_EQ(heap->pending, 0);
}

int main(void) {
  RUN(pooled_homes_keep_their_parts);
  RUN_UNLESS_SECURE(pooled_heap_is_taken_warm);
  RUN_UNLESS_SECURE(pooled_heaps_are_looked_at);
  RUN_UNLESS_SECURE(pooled_heaps_rest);
  RUN(pooled_heap_in_use_stays);
  RUN(owned_heaps_are_not_looked_at);
  return test_status();
}
