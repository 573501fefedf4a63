#include "epoch/store.h"

#include "blocks.h"
#include "state.h"
#include "takes.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// A home heap has a store from the beginning, and its own number, tag and bins.
static void homes_are_whole(void) {
  open_heaps();
  struct tsl_heap *third = tsl_heap_add(NULL);
  CHECK(third->home == third && tsl_heap_has_store(third));
  CHECK(tsl_heap_at(third->number) == third);
  CHECK_EQ(third->tag, third->number << TSL_CODE_BITS);
  for (unsigned class = 0; class < TSL_BINS; class ++) CHECK(tsl_bin_valid(third, class));
}

static void stores_are_opened_when_needed(void) {
  open_heaps();
  tslab_epoch id;
  struct tsl_heap *part = blocks_open_part(heap, TSLAB_NO_CELLS, &id);
  CHECK_EQ(part->ticks, TSL_TICK_REFILLS);
  CHECK(tsl_heap_has_store(heap) && !tsl_heap_has_store(part));
  CHECK_EQ(part->store->stocks[3].block_bytes, tsl_sizeclasses[3].bytes);
  void *block = alloc(64);
  CHECK_EQ(tsl_map_lookup(block), part->tag | takes_class(64) * 2);
  CHECK((uintptr_t)part->store == tsl_region.stores + part->number * (size_t)TSL_STORE_BYTES);
  CHECK(part->store != heap->store);
  for (unsigned class = 0; class < TSL_BINS; class ++)
    CHECK_EQ(part->store->stocks[class].block_bytes, tsl_sizeclasses[class].bytes);
  state_check();
}

int main(void) {
  RUN(homes_are_whole);
  RUN(stores_are_opened_when_needed);
  return test_status();
}
