#include "epoch/mend.h"

#include "epoch/heap.h"
#include "epoch/quarantine.h"
#include "memory/record.h"

// The fork came when the last allocation before the next look was counted, and not seen yet.
static void until_mend(struct tsl_heap *heap, unsigned class) {
  if (tsl_bin_until(&heap->bins[class]) != 0) return;
  heap->bins[class].until++;
  heap->store->allocations[class]++;
}

// Its blocks were counted as allocated, but for a moment; no count is below zero after that.
static void stock_give_up(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  uint64_t *allocations = &heap->store->allocations[class];
  uint64_t until = tsl_bin_until(&heap->bins[class]);
  *allocations -= tsl_stock_blocks(stock);
  if ((int64_t)(*allocations - until) < 0) *allocations = until;
  stock->run = 0;
  stock->rest = 0;
}

// H4: a slab with a free block is on its stock's list.
static void slab_mend(struct tsl_heap *heap, struct tsl_slab *slab) {
  tsl_slab_recount(slab);
  slab->listed = false;
  if (slab->summary != 0) tsl_stock_list(&heap->store->stocks[slab->class], slab);
  heap->store->tallies[slab->class].out += slab->out;
}

// Between two stores of a fast path bins and slabs are whole but for their counts, while a stock
// may name a block that is in use: its blocks are given up. Who lays a heap down changes the lists
// of stocks as well: they follow from the slabs.
void tsl_heap_mend(struct tsl_heap *heap) {
  heap->torn = TSL_HEAP_WHOLE;
  if (!tsl_heap_has_store(heap)) return;  // pairs: heap-store
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    until_mend(heap, class);
    tsl_bin_mend(heap, class);
    stock_give_up(heap, class);
    heap->store->stocks[class].slabs = NULL;
    tsl_tally_forget_out(&heap->store->tallies[class], class);
  }
  tsl_quarantine_recount(heap);
  heap->store->handed = NULL;  // its thread may have been wiping it
  for (tsl_unit unit = heap->slabs; unit != 0; unit = tsl_span_at(unit)->next)
    slab_mend(heap, tsl_slab_at(unit));
}
