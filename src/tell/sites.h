// sites: the call stacks that allocate. A stack is found by its frame pointers, which is cheap. The
// first time each one is compared with the unwinder's: where both agree, the frame pointers are
// enough from then on. Where they differ, the stack is found by the frame sizes that the unwinder
// has learned (os/frames.h).
#pragma once

#include <stdint.h>

#include "state/heap.h"

// The site of the calling function's call stack; 0 when there is no room for one more. Never
// inlined: all walks begin at its frame. Owner only.
TSL_HIDDEN uint32_t tsl_site_of(struct tsl_home *home, uint32_t label, unsigned class);

// In the child of a fork, whose file has no sites yet.
TSL_HIDDEN void tsl_sites_after_fork(void);
