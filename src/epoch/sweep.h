// sweep: the sealed cells and slabs of an ended epoch, all at once. Takes time in proportion to the
// region.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Gives them back with all that lives in them, while none of them is held (O2).
TSL_HIDDEN void tsl_sweep_give(uint32_t slot);

// Makes them inaccessible, or accessible and zero again. False when the system refused any.
TSL_HIDDEN bool tsl_sweep_protect(uint32_t slot, bool is_protected);
