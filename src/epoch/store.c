#include "epoch/store.h"

#include "memory/growth.h"

// The heap has it when it is whole: a fork may come between.
void tsl_store_open(struct tsl_heap *heap) {
  uint32_t number = heap->tag >> TSL_CODE_BITS;
  uintptr_t address = tsl_region.stores + (uintptr_t)number * TSL_STORE_BYTES;
  struct tsl_store *store = (struct tsl_store *)address;
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    store->allocations[class] = tsl_bin_until(&heap->bins[class]);
    store->seen[class] = heap->bins[class].until;
    heap->bins[class].room = (int32_t)tsl_bin_limit(class);  // B5: what was taken is forgotten
    store->stocks[class] = (struct tsl_stock){.block_bytes = tsl_sizeclasses[class].bytes};
    store->tallies[class] = tsl_tally_new(class);
  }
  store->sampled_hot = 0;
  store->sampled_cold = 0;
  tsl_compiler_fence();  // pairs: heap-store
  heap->store = store;
}

static void heap_init(struct tsl_heap *heap, uint32_t number, struct tsl_heap *home) {
  heap->tag = number << TSL_CODE_BITS;
  heap->contained = tsl_region.span_bytes;
  heap->home = home;
  heap->ticks = TSL_TICK_REFILLS;
  heap->store = &tsl_store_empty;
  for (unsigned class = 0; class < TSL_BINS; class += 1)
    heap->bins[class] = tsl_bin_new(class, TSL_SELDOM_COUNT);
  if (home == heap) tsl_store_open(heap);
  tsl_store_release(&heap->number, number);  // pairs: heap-init
}

struct tsl_heap *tsl_heap_add(struct tsl_heap *home) {
  uint32_t number = tsl_region_add_heap();
  if (number == 0) return NULL;
  heap_init(tsl_heap_at(number), number, home == NULL ? tsl_heap_at(number) : home);
  return tsl_heap_at(number);
}
