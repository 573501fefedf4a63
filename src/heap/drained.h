// drained: slabs of sealed heaps that have no blocks any more. Each goes back, and drains its epoch
// by one. Any thread.
#pragma once

#include <stdbool.h>

#include "slab/slab.h"

// Gives back a slab of a sealed heap that has no blocks any more, and drains its epoch by one.
TSL_HIDDEN void tsl_heap_drained(struct tsl_slab *slab);

// The same without draining the epoch. False when the system leaves its guard in place (secure
// build): tsl_drained_try_guarded tries again, and drains the epoch then.
TSL_HIDDEN bool tsl_drained_give(struct tsl_slab *slab);
TSL_HIDDEN void tsl_drained_try_guarded(void);
