// exit: what the allocator does when the program ends; see exit.c.
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Returns true. Calling it makes static links keep the destructor, too (fork.h).
TSL_HIDDEN bool tsl_exit_is_handled(void);
