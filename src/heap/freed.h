// freed: blocks that come back to a heap of the calling thread: to its bin, to their slab, or first
// to the quarantine of the secure build. Owner only, but for tsl_heap_put_any.
#pragma once

#include "state/heap.h"

// Puts a block of the heap back in its slab.
TSL_HIDDEN void tsl_heap_put(struct tsl_heap *heap, unsigned class, void *block);

// The same for a block that has been in the quarantine, or needs not go there.
TSL_HIDDEN void tsl_heap_put_plainly(struct tsl_heap *heap, unsigned class, void *block);

// Puts up to `most` hot blocks of a class back in their slabs.
TSL_HIDDEN void tsl_heap_drain_bin(struct tsl_heap *heap, unsigned class, unsigned most);

// The rest of the fast free, which has taken one from the bin's `room`: the bin may be full, or has
// the block as its head already.
TSL_HIDDEN void tsl_heap_put_full(struct tsl_heap *heap, void *block, size_t code);

// The same for a block of a home's slab to which others freed since the owner collected there: one
// of them may have freed this block, too (visit.h).
TSL_HIDDEN void tsl_home_put_visited(struct tsl_home *home, unsigned class, void *block);

// Frees a live block into the heap's bin or, where that is full, into its slab: then the block is
// one of the heap's own.
TSL_HIDDEN void tsl_heap_push(struct tsl_heap *heap, unsigned class, void *block);

// Puts a block of another home on this one's bin. Only blocks above 1 KiB, which hardly share cache
// lines with their neighbours. False when the block has to go home instead.
TSL_HIDDEN bool tsl_home_adopt(struct tsl_home *home, uint32_t owner, unsigned class, void *block);

// Puts a block back that has left the quarantine, and reports what the program wrote to it.
TSL_HIDDEN void tsl_heap_end_quarantine(struct tsl_heap *heap, void *block);

// Puts back a block that lies in a slab of any heap; `entry` is its map entry. Any thread.
TSL_HIDDEN void tsl_heap_put_any(uint32_t entry, void *block);
