// store: how a heap comes into being, and what only heaps with slabs have of it.
#pragma once

#include "epoch/heap.h"

enum {
  TSL_TICK_REFILLS = 16,      // refills between two looks at what is not needed
  TSL_SELDOM_COUNT = 1 << 14  // hot allocations of a class between two looks by a heap at rest
};

// A new heap that belongs to `home`, or is a home heap itself when that is NULL. NULL when memory
// is out. Any thread.
TSL_HIDDEN struct tsl_heap *tsl_heap_add(struct tsl_heap *home);

// Gives a heap its own store: it goes on in slabs. Owner only.
TSL_HIDDEN void tsl_store_open(struct tsl_heap *heap);
