// orphans: in the child of a fork, the heaps whose threads it does not have. They go to the pool,
// but for those whose thread was in the middle of a change: these stay as they are for ever, with
// what they hold, and late frees of their blocks stay harmless.
#pragma once

#include <stdbool.h>

#include "epoch/heap.h"

// There are heaps to adopt.
TSL_HIDDEN extern bool tsl_orphans_wait;

// Takes note of every heap that is not of the home `mine`. In the child, before anything else there
// asks for a heap.
TSL_HIDDEN void tsl_orphans_after_fork(const struct tsl_heap *mine);

// Adopts them, unless a signal handler forked while its thread was in the middle of a change: then
// a later refill does it.
TSL_HIDDEN void tsl_orphans_adopt(void);
TSL_HIDDEN void tsl_orphans_adopt_late(void);
