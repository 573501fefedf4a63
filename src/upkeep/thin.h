// thin: cells of open epochs in which most blocks are free. The helper gives the pages back in
// which none lives. No block is handed out again where one was freed: a dead page stays dead.
#pragma once

#include "state/epoch.h"
#include "state/heap.h"
#include "upkeep/sparse.h"

// Whether the part has cells to look at.
static inline bool tsl_thin_has(const struct tsl_heap *part) {
  return part->cell_count > 1 && tsl_epoch_at(part->epoch)->largest_cell != TSL_CELL_4K;
}

// A turn begins: what is done in it is bounded, because the owner may wait. The helper, as in all
// that follows.
TSL_HIDDEN void tsl_thin_begin_turn(void);

// Looks at cells of a part, once at each until it says that the round has ended. A cell whose
// blocks are half free waits for the next round, which gives its dead pages back, and again each
// time half of its remaining blocks have gone. Of the newest, in which the owner goes on to
// allocate, those go back that were dead and behind which it allocated already at the round
// before. GOES_ON: the rest is for the next turn. While it tends the home.
TSL_HIDDEN enum tsl_sparse_round tsl_thin_tend(struct tsl_heap *part);

// Leaves the part in the middle; what was found in it so far.
TSL_HIDDEN enum tsl_sparse_round tsl_thin_end(void);
