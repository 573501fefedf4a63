// mixed: allocation in the cells of a heap whose epoch is young. Blocks of all sizes are cut off
// the newest cell. A heap that grows large, or whose objects die one by one, goes on in slabs
// (docs/decisions/036-slabs-for-busy-labels.md).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "state/heap.h"

// Who sees the end of the blocks moved, the helper or the child of a fork, finds the block's mark.
TSL_ALWAYS_INLINE void tsl_mixed_cut(struct tsl_heap *part, uintptr_t block, uintptr_t end,
                                     unsigned class) {
  tsl_store_relaxed(tsl_granule_at(block), tsl_granule_byte(class));
  tsl_compiler_fence();  // pairs: tend; heap-torn
  tsl_store_relaxed(&part->cell_next, end);
  TSL_INCREMENT(part->cell_blocks);
}

// Cuts a block off the newest cell and returns it from the calling function, unless the cell has no
// room. `offset` is that of the class's bin. Owner only.
#define TSL_RETURN_CUT(heap, offset)                                                       \
  do {                                                                                     \
    uintptr_t cut_ = (heap)->cell_next;                                                    \
    TSL_RETURNED(cut_);                                                                    \
    uintptr_t end_ = cut_ + *(const uint32_t *)((const char *)tsl_sizeclasses + (offset)); \
    if (tsl_likely(end_ <= (heap)->cell_end)) {                                            \
      tsl_mixed_cut(heap, cut_, end_, tsl_offset_class(offset));                           \
      return (void *)cut_;                                                                 \
    }                                                                                      \
  } while (0)

// Cuts a block off a new cell. NULL when the heap goes on in slabs, when the class is too large for
// cells, or when memory is out. Owner only.
TSL_HIDDEN void *tsl_mixed_refill(struct tsl_heap *heap, unsigned class);

// A block at a multiple of `alignment`; NULL as above. Owner only.
TSL_HIDDEN void *tsl_mixed_aligned(struct tsl_heap *heap, unsigned class, size_t alignment);

// Draws the next point in the rest of the newest cell anew. Owner only.
TSL_HIDDEN void tsl_mixed_redraw(struct tsl_heap *heap);
// Gives back cells in which no block lives: all, or those among the oldest that are not being cut.
// Owner only.
TSL_HIDDEN void tsl_mixed_collect(struct tsl_heap *heap);
TSL_HIDDEN void tsl_mixed_look(struct tsl_heap *heap);

// Gives back the newest cell where no block lives in it. If it was the only one, the next one is as
// large, or one class smaller where that would have done. Owner only.
TSL_HIDDEN void tsl_mixed_rest(struct tsl_heap *heap);

// Gives back all cells of a part, with all that lives in them, but for its newest one, `kept`,
// which is empty then; 0: for none. Nothing is allocated in any of them. The thread that resets or
// releases the part; its owner where a cell is kept.
TSL_HIDDEN void tsl_mixed_empty(struct tsl_heap *heap, tsl_cell_number kept);

// The same where the newest cell is the only one, no other thread freed in it, and it is kept. It
// may still be allocated in. Owner only.
TSL_HIDDEN void tsl_mixed_clear(struct tsl_heap *heap);

// Cuts the only cell of a part, which is empty, from its beginning. Owner only.
TSL_HIDDEN void tsl_mixed_restart(struct tsl_heap *heap);

// Stops allocating in the newest cell, whose counts go to its record.
TSL_HIDDEN void tsl_mixed_retire(struct tsl_heap *heap);
