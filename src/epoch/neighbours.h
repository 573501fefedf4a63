// neighbours: the free blocks around a block of the hardened build. What is free is zero there, so
// that a write from a live block to one beside it is seen when that one is freed, at the latest.
#pragma once

#include "slab/slab.h"

struct tsl_heap;

// Reports each block that its owner knows to be free and that was written to within a cache line of
// a block of the heap's, and wipes that line. Owner only.
TSL_HIDDEN void tsl_neighbours_check(const struct tsl_heap *heap, unsigned class,
                                     struct tsl_place place);
