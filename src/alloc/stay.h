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

// False, with errno, when nobody can enter the epoch; where `counted`, the epoch counts those who
// come after its end.
TSL_HIDDEN bool tsl_stay_begin(struct tsl_stay *stay, tslab_epoch epoch, bool counted);
TSL_HIDDEN void tsl_stay_end(struct tsl_stay *stay);

// A block in the epoch of a live one, or in the default epoch when that has ended.
TSL_HIDDEN void *tsl_malloc_beside(const void *block, size_t bytes);
