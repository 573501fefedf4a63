// sanitizer: a program with a sanitizer's runtime needs that one's malloc. Preloaded, this library
// is first and in its way: it starts the program again without itself.
#pragma once

#include "base/compiler.h"

// Called before the process's first allocation. Does not return when the program starts again.
TSL_HIDDEN void tsl_sanitizer_step_aside(void);
