// handful: the free blocks of one word of a slab, which a heap takes together. The first is handed
// out, the others are its stock. Owner only.
#pragma once

#include "state/heap.h"

// A block of a new handful. When memory is out: the last block of the bin, which malloc leaves
// there (bin.h), and once that is gone NULL. `sampled`: the number, from 1, of the block that is to
// be sampled; 0: none.
TSL_HIDDEN void *tsl_heap_take_handful(struct tsl_heap *heap, unsigned class, uint32_t sampled);

// A block of the stock, or of a new handful.
TSL_HIDDEN void *tsl_heap_pop_cold(struct tsl_heap *heap, unsigned class);

// A block of the class that lies in a slab, at a multiple of the class's size; NULL when memory is
// out. Does not tick: the caller's refill has done that.
TSL_HIDDEN void *tsl_heap_pop_quietly(struct tsl_heap *heap, unsigned class);
