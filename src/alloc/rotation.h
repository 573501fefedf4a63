// rotation: epochs that follow each other (include/tslab.h).
#pragma once

#include "base/compiler.h"

// In the child of a fork: takes over what a thread held that the child does not have.
TSL_HIDDEN void tsl_rotations_after_fork(void);
