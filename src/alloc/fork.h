// fork: what a fork leaves of the allocator in the child; see fork.c.
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/lock.h"

// Whether the fork handlers are registered. Calling it makes static links keep the handlers: a
// linker takes only those members of an archive that something refers to.
TSL_HIDDEN bool tsl_fork_is_handled(void);

// Two locks that the child of a fork takes over with nothing to mend. One guards the library's
// initialisation. The other guards the turns of rotations, and is one for all, because the child
// could not find a lock in each rotation.
TSL_HIDDEN extern struct tsl_lock tsl_fork_init_lock, tsl_fork_rotation_lock;
