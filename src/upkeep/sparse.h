// sparse: slabs that are mostly free but cannot go back, because a few of their blocks live on.
// Their dead pages, in which no live block lies, go back to the system. Free blocks are bits in the
// slab's record, so nothing is lost with the pages.
#pragma once

#include "state/heap.h"

// Milliseconds from one tick of a thread to the next (tick.h), and from one step to the next.
enum { TSL_TICK_MS = 4 };

// Looks at some slabs of a heap that has a store, at most once in TSL_TICK_MS of a clock that may
// be coarser. Those that have been three quarters free for `purge_delay_ms`, or four times that
// where what goes back is taken again soon (decision 031), give their dead pages back. Bounded.
// True while there may be more to do, which the second tells without a look. Owner only.
TSL_HIDDEN bool tsl_sparse_step(struct tsl_heap *heap);
TSL_HIDDEN bool tsl_sparse_waits(const struct tsl_heap *heap);

// Once per `purge_delay_ms` at most: whether what went back is taken again soon (decision 031). The
// helper.
TSL_HIDDEN void tsl_sparse_end_window(uint64_t now_ms);

// The same for the helper, while it tends the home (change.h). Its rounds are its own: a call
// goes on with the one that was begun, or begins one.
enum tsl_sparse_round {
  TSL_ROUND_GOES_ON,
  TSL_ROUND_WAITS,    // it has ended: some slabs may be due soon
  TSL_ROUND_CHANGES,  // it has ended: no slab waits, but there are other blocks free than before
  TSL_ROUND_RESTS     // it has ended, and there is nothing to do
};
TSL_HIDDEN enum tsl_sparse_round tsl_sparse_tend(struct tsl_heap *heap);
