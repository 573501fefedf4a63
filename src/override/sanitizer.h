// sanitizer: a program with a sanitizer's runtime needs the sanitizer's malloc. A preloaded library
// would come first: so it starts the program again without itself.
#pragma once

#include "base/compiler.h"

// Called before the process's first allocation. Does not return when the program starts again.
TSL_HIDDEN void tsl_sanitizer_step_aside(void);
