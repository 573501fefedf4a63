// fork: what a fork leaves of the allocator in the child; see fork.c.
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Whether a fork is prepared for. From an archive nothing comes that nobody asks for: by this
// question a program that is linked statically has the handlers, too.
TSL_HIDDEN bool tsl_fork_is_handled(void);
