// fork: what a fork leaves of the allocator in the child; see fork.c.
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/lock.h"

// Whether a fork is prepared for. From an archive nothing comes that nobody asks for: by this
// question a program that is linked statically has the handlers, too.
TSL_HIDDEN bool tsl_fork_is_handled(void);

// Locks whose holders leave nothing to mend: the child of a fork takes them over. One guards the
// library's initialisation, the other the turns of all rotations, which the child does not know.
TSL_HIDDEN extern struct tsl_lock tsl_fork_init_lock, tsl_fork_rotation_lock;
