// sweep: the sealed cells and slabs of an ended epoch, all at once. Takes time in proportion to the
// region.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "epoch/seal.h"

// Gives those that no end has spared back with all that lives in them, while none of them is held
// (O2).
TSL_HIDDEN void tsl_sweep_give(uint32_t slot);

// Ends what lives in those and is not kept (spare.h); where the epoch waits, only in those in which
// something is kept.
TSL_HIDDEN void tsl_sweep_spare(uint32_t slot);

// The same in what ends spared whose rank is above `rank`, as an end of this rank (SP1).
TSL_HIDDEN void tsl_sweep_spare_again(uint32_t slot, uint32_t rank);

// Adds what lives in those that ends spared to an epoch's survivors.
TSL_HIDDEN void tsl_sweep_count_spared(uint32_t slot, struct tsl_survivors *survivors);

// Makes those that no end has spared inaccessible, or accessible and zero again. False when the
// system refused any.
TSL_HIDDEN bool tsl_sweep_protect(uint32_t slot, bool is_protected);
