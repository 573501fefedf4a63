#include "heap/store.h"

#include "memory/growth.h"
#include "state/bin.h"
#include "state/epoch.h"
#include "state/owner.h"

bool tsl_store_counts(const struct tsl_heap *heap) {
  return !tsl_heap_is_home(heap) && !tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
}

// The heap gets the store last, when the store is whole: a fork may come before.
void tsl_store_open(struct tsl_heap *heap) {
  tsl_assert(!tsl_heap_is_ready(heap) || tsl_owner_is_me(heap));
  uint32_t number = tsl_entry_owner(heap->tag);
  uintptr_t address = tsl_region.stores + (uintptr_t)number * TSL_STORE_BYTES;
  struct tsl_store *store = (struct tsl_store *)address;
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    store->allocations[class] = tsl_bin_ahead(&heap->bins[class]);
    store->seen[class] = heap->bins[class].until;
    store->limits[class] = tsl_bin_limit_new(heap, class);
    heap->bins[class].room = store->limits[class].now;  // B5: the bin is empty
    store->stocks[class] = (struct tsl_stock){.block_bytes = tsl_sizeclasses[class].bytes};
    store->tallies[class] = tsl_tally_new(class);
  }
  store->rest = (struct tsl_rest){0};
  store->sparse = (struct tsl_sparse){0};
  store->tender = (struct tsl_sparse){0};
  store->sampled_hot = 0;
  store->sampled_cold = 0;
  tsl_compiler_fence();  // pairs: heap-store
  heap->store = store;
  if (tsl_store_counts(heap)) tsl_add_relaxed(&heap->home->stores, 1);
  if (!tsl_heap_is_home(heap)) tsl_part_grow(tsl_part_of(heap));
}

// Bins keep their limits: the same program goes on, in the same epoch.
void tsl_store_renew(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_store *store = heap->store;
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    store->allocations[class] = tsl_bin_ahead(&heap->bins[class]);
    store->stocks[class].slabs = NULL;
    store->tallies[class] = tsl_tally_new(class);
  }
  store->rest = (struct tsl_rest){0};
  store->sparse = (struct tsl_sparse){0};
  store->tender = (struct tsl_sparse){0};
}

static void heap_init(struct tsl_heap *heap, uint32_t number, struct tsl_home *home) {
  heap->tag = tsl_entry(number, 0);
  heap->contained = tsl_region.span_bytes;
  heap->home = home;
  heap->store = &tsl_store_empty;
  for (unsigned class = 0; class < TSL_BINS; class += 1)
    heap->bins[class] = tsl_bin_new(class, TSL_REST_LEAST_PACE);
}

static void heap_is_ready(struct tsl_heap *heap, uint32_t number) {
  tsl_store_release(&heap->number, number);  // pairs: heap-init
}

static void home_list(struct tsl_home *home, uint32_t number) {
  home->before = tsl_load_relaxed(&tsl_last_home);
  while (!tsl_cas_release(&tsl_last_home, &home->before, number)) continue;  // pairs: homes
}

struct tsl_home *tsl_home_add(void) {
  uint32_t number = tsl_region_add_heap();
  if (number == 0) return NULL;
  struct tsl_home *home = (struct tsl_home *)tsl_heap_at(number);
  heap_init(&home->heap, number, home);
  home->ticks = TSL_TICK_REFILLS;
  home->pace = TSL_REST_LEAST_PACE;
  home->outlived = &tsl_home_empty.heap;
  tsl_store_open(&home->heap);
  home->own = (struct tsl_home_store *)home->heap.store;
  home_list(home, number);
  heap_is_ready(&home->heap, number);
  return home;
}

struct tsl_part *tsl_part_add(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  uint32_t number = tsl_region_add_heap();
  if (number == 0) return NULL;
  struct tsl_heap *heap = tsl_heap_at(number);
  heap_init(heap, number, home);
  heap_is_ready(heap, number);
  return tsl_part_of(heap);
}
