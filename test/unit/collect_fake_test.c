#include "upkeep/collect.h"

#include "blocks.h"
#include "state.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static void collected_heap_keeps_nothing(void) {
  open_heaps();
  for (size_t bytes = 16; bytes <= TSL_SMALL_LIMIT; bytes *= 2) alloc_many(bytes, 100);
  free_many();
  tsl_home_collect(heap->home);
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(heap->home->unit_count, 0);
  state_check();
  alloc_many(100, 100);
  state_check();
}

static void collected_heap_keeps_live_blocks(void) {
  open_heaps();
  alloc_many(128, 5000);
  for (unsigned i = 0; i < block_count; i++) {
    if (i % 64 != 0) tsl_fast_free(blocks[i]);
  }
  tsl_home_collect(heap->home);
  state_check();
  for (unsigned i = 0; i < block_count; i += 64) {
    CHECK_EQ(*(unsigned char *)blocks[i], 0xa5);
    tsl_fast_free(blocks[i]);
  }
  tsl_home_collect(heap->home);
  CHECK_EQ(state_owned_units(), 0);
}

static void pool_is_collected(void) {
  open_heaps();
  alloc_many(64, 3000);
  free_many();
  tsl_home_pool(heap->home);
  tsl_home_pool(other->home);
  tsl_heap_current = &tsl_home_empty.heap;
  tsl_heap_collect_all();
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(state_cached_units(), tsl_unit_cache_units());
  state_check();
  struct tsl_heap *again = &tsl_home_take()->heap, *last = &tsl_home_take()->heap;
  CHECK(again != last && (again == heap || again == other) && (last == heap || last == other));
  CHECK_EQ(tsl_home_take()->heap.number, 3);
}

// Each home's bin holds a block of the other one's slab, whichever is collected first.
static void blocks_at_rest_in_other_homes_are_collected(void) {
  open_heaps();
  void *first = alloc(3000);
  tsl_heap_current = other;
  void *second = alloc(3000);
  tsl_fast_free(first);
  tsl_heap_current = heap;
  tsl_fast_free(second);
  tsl_home_pool(heap->home);
  tsl_home_pool(other->home);
  tsl_heap_current = &tsl_home_empty.heap;
  tsl_heap_collect_all();
  CHECK_EQ(state_owned_units(), 0);
}

int main(void) {
  RUN(blocks_at_rest_in_other_homes_are_collected);
  RUN(collected_heap_keeps_nothing);
  RUN(collected_heap_keeps_live_blocks);
  RUN(pool_is_collected);
  return test_status();
}
