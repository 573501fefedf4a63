// rest: hot blocks and stocks that go back to their slabs because the thread does not allocate from
// their class.
#pragma once

#include "state/heap.h"

// A class of a heap with a store that the thread has not allocated from since the last look gives
// free blocks back to their slabs, so that these can empty. One class a call at most. Owner only.
TSL_HIDDEN void tsl_heap_rest(struct tsl_heap *heap);

// Puts all hot blocks and stocks of a home and its parts of shared epochs back in their slabs, and
// settles those. Owner only.
TSL_HIDDEN void tsl_home_rest_all(struct tsl_home *home);

// Does so for a heap with a store, if its thread took no block since this was called last. Owner
// only.
TSL_HIDDEN void tsl_heap_rest_unused(struct tsl_heap *heap);

// The same for the stock of one class. Owner only.
TSL_HIDDEN void tsl_heap_drain_stock(struct tsl_heap *heap, unsigned class);

// The same for the stocks of all classes: their blocks are drawn for anew when they are next taken,
// also those of which it is known that they hold no point. Owner only.
TSL_HIDDEN void tsl_heap_drain_stocks(struct tsl_heap *heap);

// Moves hot blocks and stocks to their slabs, without looking whether these became empty. The
// owner, or who seals the heap, or who looks at it while nobody uses it.
TSL_HIDDEN void tsl_heap_lay_down(struct tsl_heap *heap);
