#include "heap/store.h"

#include "blocks.h"
#include "state.h"
#include "state/bin.h"
#include "takes.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// A home heap has a store from the beginning, and its own number, tag and bins.
static void homes_are_whole(void) {
  open_heaps();
  struct tsl_heap *third = &tsl_home_add()->heap;
  CHECK(tsl_heap_is_home(third) && tsl_heap_has_store(third));
  CHECK(tsl_heap_at(third->number) == third);
  CHECK_EQ(third->tag, third->number << TSL_CODE_BITS);
  for (unsigned class = 0; class < TSL_BINS; class ++) CHECK(tsl_bin_valid(third, class));
}

static void stores_are_opened_when_needed(void) {
  open_heaps();
  tslab_epoch id;
  struct tsl_heap *part = blocks_open_part(heap, TSLAB_NO_CELLS, &id);
  CHECK_EQ(part->home->ticks, TSL_TICK_REFILLS);
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

static void no_heap_without_memory(void) {
  open_heaps();
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_home_take() != NULL) continue;
  os_fake_recover();
  CHECK(tsl_home_take() != NULL);
  state_check();
}

static void heaps_come_to_an_end(void) {
  os_fake.limit_bytes = (size_t)1 << 24;
  CHECK(tsl_region_init());
  uint32_t count = 0;
  struct tsl_home *home;
  while ((home = tsl_home_take()) != NULL) CHECK_EQ(home->heap.number, ++count);
  CHECK_EQ(count, tsl_region.limit_heaps - 1);
  tsl_home_pool(tsl_heap_at(7)->home);
  CHECK(&tsl_home_take()->heap == tsl_heap_at(7));
  CHECK(tsl_home_take() == NULL);
}

int main(void) {
  RUN(homes_are_whole);
  RUN(stores_are_opened_when_needed);
  RUN(no_heap_without_memory);
  RUN(heaps_come_to_an_end);
  return test_status();
}
