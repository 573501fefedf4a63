// inventory: the epochs that there are, each with what lives in it, from one walk through memory.
#pragma once

#include "base/compiler.h"
#include "tslab.h"

// Calls `visit` for each epoch that there is now, but the default one, unless it is over when its
// turn comes. It gets all figures but `threads` and `scopes`, which are 0. Changes nothing; `visit`
// may do what it likes.
TSL_HIDDEN void tsl_inventory_each(void (*visit)(const tslab_epoch_stats *stats, void *context),
                                   void *context);
