// count: how many allocations of a class there are until the owner looks at its counters. A hot
// allocation decrements `until` and touches no other counter.
#pragma once

#include "state/heap.h"

// Hot allocations of a class between two looks at the clock, while there may be memory to give
// back. At rest: store.h.
enum { TSL_LEAST_PACE = 16, TSL_MOST_PACE = 512 };

// Sets the number until the next look, and keeps the total. Owner only.
TSL_HIDDEN void tsl_heap_count(struct tsl_heap *heap, unsigned class);

// Draws the points of a heap's hot blocks anew. Owner only.
TSL_HIDDEN void tsl_heap_redraw(struct tsl_heap *heap);

// Another thread will take the home, of which it is not known how fast it allocates. Owner only.
TSL_HIDDEN void tsl_home_forget_pace(struct tsl_home *home);

// There may be memory to give back soon: the thread looks at its counters more often. Owner only.
TSL_HIDDEN void tsl_home_wake_up(struct tsl_home *home);
TSL_ALWAYS_INLINE void tsl_home_wake(struct tsl_home *home) {
  if (!home->awake) tsl_home_wake_up(home);
}
