// reset: all objects of an open epoch end, and the epoch goes on. While it is reset it is neither
// open nor ended (E1): nobody enters it.
#pragma once

#include "state/epoch.h"

// 0, ESTALE, ECANCELED, EPERM (the default epoch, a shared one), EBUSY (another thread is inside,
// or resets it), ENOTSUP (it shares). A thread that has a heap.
TSL_HIDDEN int tsl_reset_epoch(tslab_epoch id);
