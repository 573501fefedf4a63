// spare: what the end of an epoch leaves alive: the blocks that were kept (kept.h), with the
// cells, slabs and large blocks in which they lie. These are sealed, stay with the epoch's record,
// and keep it from retiring; what else lived in them ends.
//
//  SP1  what an end spared has a rank: the number of ancestors of the epoch that ended, plus 1. An
//       end looks at it only if its own rank is lower: so a later end of the same epoch does not,
//       and that of an ancestor ends what was not kept again
//  SP2  an end counts each block that it ends in a piece with kept blocks: so a free of a kept one
//       that has begun, and does not count yet, finds the piece still there
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "state/heap.h"

struct tsl_spared {
  uint32_t pieces;      // cells and slabs that left the part,
  uint32_t given;       // and of these, those that went back: no free was left to wait for
  uint32_t slab_pages;  // of 4 KiB: of the slabs
};

// The rank of what the end of this epoch spares (SP1).
TSL_HIDDEN uint32_t tsl_spare_rank(uint32_t slot);

// Takes the cells and slabs in which kept blocks live out of a part that ends, and seals them.
// Each adds one to `undrained`; the caller drains the epoch by `given`. The other blocks in them
// end, and those of all cells, unless what ends `waits` (poison.h). The thread that ends the part.
TSL_HIDDEN struct tsl_spared tsl_spare_part(struct tsl_heap *heap, bool waits);

// Ends the blocks of a sealed cell or slab that are not kept, and the caller's hold of it. Other
// threads may free some meanwhile. True when the cell is empty and went back; a slab then drains
// its epoch itself. The thread that ends the epoch.
TSL_HIDDEN bool tsl_spare_cell(tsl_cell_number number, uint32_t rank);
TSL_HIDDEN void tsl_spare_slab(struct tsl_slab *slab, uint32_t rank);
