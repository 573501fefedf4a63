// close: how epochs end. Closing leaves the live objects to be freed one by one; releasing ends
// them all, those of the epoch's children included.
#pragma once

#include "epoch/epoch.h"
#include "epoch/seal.h"

// Registers `run(argument)` for the end of the epoch; the last one registered runs first, on the
// thread that ends it. 0, ENOMEM, ESTALE or ECANCELED.
TSL_HIDDEN int tsl_close_defer(tslab_epoch id, void (*run)(void *), void *argument);

// 0 and what survived, or ESTALE, ECANCELED, EPERM (the default epoch).
TSL_HIDDEN int tsl_close_epoch(tslab_epoch id, struct tsl_survivors *survivors);

// The same; an epoch that was closed before may be released as long as objects survive in it.
TSL_HIDDEN int tsl_close_release(tslab_epoch id);
