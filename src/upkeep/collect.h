// collect: gives everything back that is free in heaps.
#pragma once

#include "state/heap.h"

// Collects what others freed in the heap's slabs; those that are empty then go back. Owner only.
TSL_HIDDEN void tsl_heap_collect(struct tsl_heap *heap);

// Moves every hot block to its slab, collects what others freed, and gives empty slabs and units
// away. Owner only.
TSL_HIDDEN void tsl_home_collect(struct tsl_home *home);

// The same for every heap that is in the pool, and for the calling thread's. Any thread.
TSL_HIDDEN void tsl_heap_collect_all(void);
