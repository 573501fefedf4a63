// inventory: all epochs, each with its live objects and bytes, from one walk through memory.
#pragma once

#include "base/compiler.h"
#include "tslab.h"

// Calls `visit` for each declared epoch that was there at the beginning and is not over when its
// turn comes. Of the figures `threads`, `scopes` and what was allocated so far are 0. Changes
// nothing; `visit` may call any function of the library. Any thread.
TSL_HIDDEN void tsl_inventory_each(void (*visit)(const tslab_epoch_stats *stats, void *context),
                                   void *context);
