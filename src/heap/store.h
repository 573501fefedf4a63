// store: makes homes and parts, and the store that a heap gets when it begins to use slabs.
#pragma once

#include "state/heap.h"

enum {
  TSL_MOST_STORES = 8,    // of a thread's parts that have slabs only because these are faster
  TSL_TICK_REFILLS = 16,  // refills between two looks at what is not needed
  // Hot allocations of a class between two looks at the clock by a home at rest.
  TSL_REST_LEAST_PACE = 1 << 14,
  TSL_REST_MOST_PACE = 1 << 16
};

// A new home, and a new part of a home's. NULL when memory is out. Any thread; the home's owner.
TSL_HIDDEN struct tsl_home *tsl_home_add(void);
TSL_HIDDEN struct tsl_part *tsl_part_add(struct tsl_home *home);

// Whether its store is one of TSL_MOST_STORES: not that of a home, nor of a part in a shared epoch.
// Any thread.
TSL_HIDDEN bool tsl_store_counts(const struct tsl_heap *heap);

// Gives a heap its own store: it goes on in slabs. Owner only.
TSL_HIDDEN void tsl_store_open(struct tsl_heap *heap);

// Begins the counts of a heap's store anew, with no slab in any stock. All bins and stocks are
// empty. The thread that resets the part.
TSL_HIDDEN void tsl_store_renew(struct tsl_heap *heap);
