// cut_back: the block of a part's newest cell that was cut back last (tsl_cells_free_last), as one
// word: its place in the cell, and the byte that its granule had. The next block is cut there, so
// the granule says nothing of it; reports of misuse do.
#pragma once

#include <stdint.h>

#include "state/heap.h"

// A place is a multiple of a granule: shifted so far, it is one of 256.
enum { TSL_CUT_BACK_SHIFT = 8 - TSL_GRANULE_LOG2, TSL_CUT_BACK_BYTE = 0xff };

TSL_ALWAYS_INLINE uint32_t tsl_cut_back(const struct tsl_heap *part, uintptr_t block,
                                        unsigned byte) {
  return (uint32_t)(block - part->cell_start) << TSL_CUT_BACK_SHIFT | byte;
}

// The byte of the block at the address; 0 when that was not cut back last. Any thread: it may go
// on meanwhile.
static inline unsigned tsl_cut_back_byte(const struct tsl_heap *part, uintptr_t block) {
  uint32_t last = tsl_load_relaxed(&part->cell_cut_back), byte = last & TSL_CUT_BACK_BYTE;
  uintptr_t place = (last - byte) >> TSL_CUT_BACK_SHIFT;
  return block - tsl_load_relaxed(&part->cell_start) == place ? byte : 0;
}
