// thin: older cells of open epochs in which most blocks are free. The helper gives the pages back in
// which none lives. No block is handed out again in such a cell, so that a dead page stays dead.
#pragma once

#include "state/heap.h"
#include "upkeep/sparse.h"

// Looks at older cells of a part, once at each of its cells until it says that the round has ended.
// A cell whose blocks are half free waits for the next round, which gives its dead pages back, and
// again each time half of its remaining blocks have gone. A few system calls: its owner may wait.
// The helper, while it tends the home.
TSL_HIDDEN enum tsl_sparse_round tsl_thin_tend(struct tsl_heap *part);

// The next call begins with the first cell of a part.
TSL_HIDDEN void tsl_thin_forget(void);
