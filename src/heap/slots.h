// slots: epoch records that no epoch uses. A thread keeps a few at hand.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// The slot of a record that no epoch uses; 0 when memory is out.
TSL_HIDDEN uint32_t tsl_slot_take(void);

// Takes back the slot of an epoch that has retired.
TSL_HIDDEN void tsl_slot_give(uint32_t slot);
