// orphans: in the child of a fork, the heaps of the threads that only the parent has. They go to
// the pool, except those whose thread was in the middle of a change: these stay as they are for
// ever, with all that they hold. Frees of their blocks stay harmless.
#pragma once

#include <stdbool.h>

#include "state/heap.h"

// There are heaps that were not adopted yet. [remote] Who takes it away adopts them.
TSL_HIDDEN extern bool tsl_orphans_wait;

// Marks every heap that does not belong to the home `mine`. In the child, before any other call
// there asks for a heap.
TSL_HIDDEN void tsl_orphans_after_fork(const struct tsl_home *mine);

// Adopts them, unless a signal handler forked while its thread was in the middle of a change: then
// a later refill does it.
TSL_HIDDEN void tsl_orphans_adopt(void);
TSL_HIDDEN void tsl_orphans_adopt_late(void);
