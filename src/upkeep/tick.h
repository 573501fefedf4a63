// tick: what a thread does now and then on its slow paths: it gives memory back, reports
// statistics, and follows the rate of samples. Owner only.
#pragma once

#include "state/heap.h"

// To be called at each refill: ticks when the clock says so (TSL_TICK_MS, sparse.h). Where it does
// not, the last of TSL_TICK_REFILLS does the part of a tick that follows their number.
TSL_HIDDEN void tsl_home_refilled(struct tsl_home *home);
TSL_HIDDEN void tsl_home_tick(struct tsl_home *home);

// Called when the counters of a class are due: counts, reports, and ticks when a tick is due.
TSL_HIDDEN void tsl_heap_recount(struct tsl_heap *heap, unsigned class);

// Draws all points anew after another mean was asked for, or none.
TSL_HIDDEN void tsl_home_follow_samples(struct tsl_home *home);

// Draws the heap's points anew when they are to lie farther apart, or nearer, than they were drawn.
// To be called after a point that was reached has been used; otherwise that point is lost.
TSL_HIDDEN void tsl_heap_follow_samples(struct tsl_heap *heap);
