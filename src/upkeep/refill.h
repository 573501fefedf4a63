// refill: allocations for which the bin and the stock have no block. Owner only.
#pragma once

#include "state/heap.h"

// A block of a class whose stock has nothing left, and for which the newest cell has no room. NULL
// when memory is out.
TSL_HIDDEN void *tsl_heap_refill(struct tsl_heap *heap, unsigned class);

// A block of the class that lies in a slab, at a multiple of the class's size; NULL when memory is
// out.
TSL_HIDDEN void *tsl_heap_pop(struct tsl_heap *heap, unsigned class);

// The same; when that block holds a sample point, another one instead, which lies in a cell of its
// own.
TSL_HIDDEN void *tsl_heap_pop_sampled(struct tsl_heap *heap, unsigned class);
