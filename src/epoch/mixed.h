// mixed: the cells of a heap whose epoch is young. Blocks are cut off the newest cell; one that is
// freed is not handed out again, but the cell goes back once all of its blocks are free. An epoch
// that grows large, or whose objects die one by one, goes on in slabs.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "epoch/heap.h"

// Cuts a block off the newest cell and returns it from the calling function, unless the cell has no
// room. `place` is that of the class's bin. Owner only.
#define TSL_RETURN_CUT(heap, place)                                                       \
  do {                                                                                    \
    uintptr_t cut_ = (heap)->cell_next;                                                   \
    TSL_RETURNED(cut_);                                                                   \
    uintptr_t end_ = cut_ + *(const uint32_t *)((const char *)tsl_sizeclasses + (place)); \
    if (tsl_likely(end_ <= (heap)->cell_end)) {                                           \
      (heap)->cell_next = end_;                                                           \
      TSL_INCREMENT((heap)->cell_blocks);                                                 \
      uint8_t class_ = (uint8_t)((place) / sizeof(struct tsl_bin));                       \
      tsl_store_relaxed(tsl_granule_at(cut_), (uint8_t)(class_ + 1));                     \
      return (void *)cut_;                                                                \
    }                                                                                     \
  } while (0)

// A block from a new cell. NULL when the class wants a slab, or memory is out. Owner only.
TSL_HIDDEN void *tsl_mixed_refill(struct tsl_heap *heap, unsigned class);

// A block at a multiple of `alignment`; NULL as above. Owner only.
TSL_HIDDEN void *tsl_mixed_aligned(struct tsl_heap *heap, unsigned class, size_t alignment);

// Frees a block that lies in a cell, by the code of its map entry. Any thread.
TSL_HIDDEN void tsl_mixed_free_older(struct tsl_heap *current, void *block, unsigned code);
TSL_HIDDEN void tsl_mixed_free_nothing(const void *block);

// Marks a block free that nobody else may free or seal; returns its granule's byte, or 0 when it is
// none.
TSL_ALWAYS_INLINE unsigned tsl_mixed_mark(
    uint8_t *granule,  // NOLINT(readability-non-const-parameter)
    const void *block) {
  unsigned code = tsl_load_relaxed(granule);
  bool misaligned = ((uintptr_t)block & ((1u << TSL_GRANULE_LOG2) - 1)) != 0;
  if (tsl_unlikely(code - 1 >= TSL_CLASSES || misaligned)) return 0;
  tsl_store_relaxed(granule, (uint8_t)(code | TSL_CELL_FREED));
  return code;
}

TSL_ALWAYS_INLINE void tsl_mixed_free(struct tsl_heap *current, void *block, unsigned code) {
  uintptr_t address = (uintptr_t)block, offset = address - current->cell_start;
  if (tsl_unlikely(offset >= current->cell_end - current->cell_start))
    return tsl_mixed_free_older(current, block, code);
  unsigned byte = tsl_mixed_mark(tsl_granule_at(address), block);
  if (tsl_unlikely(byte == 0)) return tsl_mixed_free_nothing(block);
  current->cell_freed += tsl_cell_shares[byte];
}

// The class whose block a cell is, in use or not.
TSL_ALWAYS_INLINE unsigned tsl_mixed_cell_class(tsl_cell_number number) {
  return tsl_entry_code(tsl_load_relaxed(tsl_map_entry(number / TSL_UNIT_PAGES))) / 2;
}

// The class of a live block in a cell; TSL_BINS when no live block begins there.
TSL_HIDDEN unsigned tsl_mixed_class(const void *block);

// A block that has a cell to itself, so that it is known when it ends. NULL when the class is too
// large, or memory is out. Owner only.
TSL_HIDDEN void *tsl_mixed_alone(struct tsl_heap *heap, unsigned class);

// Draws the point anew that lies in the rest of the newest cell. Owner only.
TSL_HIDDEN void tsl_mixed_redraw(struct tsl_heap *heap);
TSL_HIDDEN tsl_cell_number tsl_mixed_cell_of(const void *block);

// Looks at up to `most` of a home heap's cells, and gives those back whose block somebody else
// freed. Owner only.
enum { TSL_MIXED_FEW = 4 };
TSL_HIDDEN void tsl_mixed_look(struct tsl_heap *home, uint32_t most);

// Stops allocating in the newest cell, whose counts go to its record.
TSL_HIDDEN void tsl_mixed_retire(struct tsl_heap *heap);

// A sealed cell has lost its last block: it goes back, and its epoch waits for it no more. Any
// thread.
TSL_HIDDEN void tsl_mixed_drained(tsl_cell_number number);

// Gives back a cell that has no blocks any more. Any thread.
TSL_HIDDEN void tsl_mixed_give(tsl_cell_number number);
