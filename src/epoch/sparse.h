// sparse: slabs that are mostly free but cannot go back, because a few of their blocks live on. The
// pages in which none of these lies go back to the system: what is known of their blocks lies
// elsewhere, so nothing is lost with them.
#pragma once

#include "epoch/heap.h"

// Looks at some of a home heap's slabs, at most once a millisecond; those that were three quarters
// free for option `purge_delay_ms` give their dead pages back. Bounded. True while there may be
// more to do. Owner only.
TSL_HIDDEN bool tsl_sparse_step(struct tsl_heap *home);
