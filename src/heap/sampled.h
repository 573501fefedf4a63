// sampled: small blocks that hold a point. They lie in cells of their own (P1): those of up to a
// kilobyte several in a cell of 4 KiB, which goes back once all are freed, others one in each.
// Owner only.
#pragma once

#include "state/heap.h"

// Draws the point of the next handful, unless it is known that its first block holds one, drawn
// `cut_apart` bytes apart; 0: it is not. `*turn`: the number of the block that holds it, from 1; 0:
// none does. When it is the first block, that is sampled here and returned; else NULL.
TSL_HIDDEN void *tsl_sampled_handful(struct tsl_heap *heap, unsigned class, uint64_t cut_apart,
                                     uint32_t *turn);

// Allocates a sampled block, for a point that was drawn when points lay `apart` bytes apart. NULL,
// and the caller allocates as usual, when there is no cell for it, or blocks of the class are not
// sampled there.
TSL_HIDDEN void *tsl_sampled_small(struct tsl_heap *heap, unsigned class, uint64_t apart);

// The same at a multiple of `alignment`, a power of two; 4 KiB at most.
TSL_HIDDEN void *tsl_sampled_aligned(struct tsl_heap *heap, unsigned class, uint64_t apart,
                                     size_t alignment);
