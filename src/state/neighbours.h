// neighbours: in the hardened build, the free blocks around a block that is being freed. Free
// memory is zero there, so that an overflow into a free neighbour is found now.
#pragma once

#include "slab/slab.h"

struct tsl_heap;

// Reports each neighbour that is free, as far as the owner knows, and was written to within a cache
// line of the block at `position`; wipes that line. Owner only.
TSL_HIDDEN void tsl_neighbours_check(const struct tsl_heap *heap, unsigned class,
                                     struct tsl_position position);
