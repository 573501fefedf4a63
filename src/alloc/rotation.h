// rotation: epochs that follow each other (include/tslab.h).
#pragma once

#include "base/compiler.h"

// For fork: no rotation turns between the two.
TSL_HIDDEN void tsl_rotations_lock(void);
TSL_HIDDEN void tsl_rotations_unlock(void);
