// total: what was allocated in an epoch so far, in objects and bytes. A part's own counts are added
// to its epoch as the part ends or is reset, large blocks as they are allocated or grow.
#pragma once

#include <stdint.h>

#include "slab/stock.h"
#include "state/bin.h"
#include "state/epoch.h"
#include "state/heap.h"

struct tsl_total {
  uint64_t objects;
  uint64_t bytes;  // of their size classes
};

// Of an epoch's large blocks, and of its parts that have ended. Any thread.
TSL_HIDDEN struct tsl_total tsl_total_of(uint32_t slot);

// For an epoch that begins.
TSL_ALWAYS_INLINE void tsl_total_begin(struct tsl_epoch *epoch) {
  tsl_store_relaxed(&epoch->total_objects, 0);
  tsl_store_relaxed(&epoch->total_bytes, 0);
}

// A block, or the growth of one (`objects` is 0). Any thread.
TSL_HIDDEN void tsl_total_add(uint32_t slot, struct tsl_total more);

// The counts of a part that ends, or begins anew. The thread that ends it.
TSL_HIDDEN void tsl_total_end_part(const struct tsl_heap *part);

// Those of a part's cells. As below.
static inline struct tsl_total tsl_total_of_cells(const struct tsl_heap *part) {
  uint64_t recut = part->cell_recut, objects = part->cut_objects + part->cell_blocks;
  uint64_t granules = part->cut_granules + tsl_cell_shares_granules(recut);
  if (part->cell_end != 0) granules += (part->cell_next - part->cell_start) >> TSL_GRANULE_LOG2;
  objects += tsl_cell_shares_objects(recut);
  return (struct tsl_total){objects, granules << TSL_GRANULE_LOG2};
}

// Those of a part that lives: of some moment, while its thread allocates. Inline: see inspect.c in
// CMakeLists.txt.
static inline struct tsl_total tsl_total_of_part(const struct tsl_heap *part) {
  struct tsl_total total = tsl_total_of_cells(part);
  for (unsigned class = 0; class < TSL_CLASSES && tsl_heap_has_store(part); class += 1) {
    if (part->store->tallies[class].refills == 0) continue;
    uint64_t objects = part->store->allocations[class] - tsl_bin_ahead(&part->bins[class]) -
                       tsl_stock_blocks(&part->store->stocks[class]);
    total.objects += objects;
    total.bytes += objects * tsl_sizeclasses[class].bytes;
  }
  return total;
}
