// stay: one operation in an epoch, by a thread that may have no heap.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "alloc/thread.h"
#include "tslab.h"

struct tsl_stay {
  struct tsl_lease lease;
  tslab_scope scope;
};

// Enters the epoch. False, with errno, when that fails. `counted`: a refusal because the epoch has
// ended is counted in its `late`.
TSL_HIDDEN bool tsl_stay_begin(struct tsl_stay *stay, tslab_epoch epoch, bool counted);
TSL_HIDDEN void tsl_stay_end(struct tsl_stay *stay);

// Allocates in the epoch whose end ends the live block `block` (keep.h); in the default epoch when
// that one has ended, and the thread is not inside.
TSL_HIDDEN void *tsl_malloc_beside(const void *block, size_t bytes);
