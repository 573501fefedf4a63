#include "state/mend.h"

#include "state/bin.h"
#include "state/heap.h"
#include "state/quarantine.h"

// The fork came when `until` had reached its end, before the owner looked at the counters.
static void until_mend(struct tsl_heap *heap, unsigned class) {
  if (tsl_bin_ahead(&heap->bins[class]) != 0) return;
  heap->bins[class].until++;
  heap->store->allocations[class]++;
}

// Drops the stock's blocks, which count as allocated, except in the moment before the owner counts
// them: so the result is kept from falling below zero.
static void stock_give_up(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  uint64_t *allocations = &heap->store->allocations[class];
  uint64_t until = tsl_bin_ahead(&heap->bins[class]);
  *allocations -= tsl_stock_blocks(stock);
  if ((int64_t)(*allocations - until) < 0) *allocations = until;
  stock->run = 0;
  stock->rest = 0;
}

// H3: a slab with a free block is on its stock's list.
static void slab_mend(struct tsl_heap *heap, struct tsl_slab *slab) {
  tsl_slab_recount(slab);
  slab->listed = false;
  if (slab->summary != 0) tsl_stock_list(&heap->store->stocks[slab->class], slab);
  heap->store->tallies[slab->class].out += slab->out;
}

// Its thread had marked a block, and not moved the end of the blocks yet.
static void cell_mend(const struct tsl_heap *heap) {
  if (heap->cell_next < heap->cell_end) tsl_store_relaxed(tsl_granule_at(heap->cell_next), 0);
}

// Between two stores of a fast path the lists of bins and slabs are whole, and their counts may be
// wrong: they are counted anew. A stock may name a block that is in use: all its blocks are given
// up. Laying a heap down also changes the stocks' lists of slabs: they are made anew from the list
// of all slabs.
void tsl_heap_mend(struct tsl_heap *heap) {
  tsl_store_relaxed(&heap->torn, TSL_HEAP_WHOLE);
  cell_mend(heap);
  if (!tsl_heap_has_store(heap)) return;  // pairs: heap-store
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    until_mend(heap, class);
    tsl_bin_mend(heap, class);
    stock_give_up(heap, class);
    heap->store->stocks[class].slabs = NULL;
    tsl_tally_forget_out(&heap->store->tallies[class], class);
  }
  tsl_quarantine_recount(heap);
  // Its thread may have been wiping it.
  if (tsl_heap_is_home(heap)) heap->home->own->handed = NULL;
  for (tsl_unit unit = heap->slabs; unit != 0; unit = tsl_span_at(unit)->next)
    slab_mend(heap, tsl_slab_at(unit));
}
