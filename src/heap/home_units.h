// home_units: the empty units that a home keeps at hand for its thread's next slabs.
#pragma once

#include "state/heap.h"

// Takes `count` neighbouring units; a single one from the home's own, else from the unit cache,
// else from the segments. 0 when memory is out. Owner only.
TSL_HIDDEN tsl_unit tsl_home_units_take(struct tsl_home *home, unsigned count);

// Gives units back: a single one to the calling thread's home while that has fewer than option
// `cache_units`, or to the unit cache; neighbouring ones, and one of which pages went back while it
// was in use, to the segments, from which units are taken last. True when the home has not got it.
// Any thread.
TSL_HIDDEN bool tsl_home_units_give(tsl_unit first, unsigned count);

// Moves the units that a home has beyond `keep` to the unit cache. No effect for the empty home.
// Owner only.
TSL_HIDDEN void tsl_home_units_trim(struct tsl_home *home, uint32_t keep);

// The same for those that the thread did not need since this was called last. Owner only.
TSL_HIDDEN void tsl_home_units_trim_unused(struct tsl_home *home);

// The same for all of a home that the helper tends (C4).
TSL_HIDDEN void tsl_home_units_tend(struct tsl_home *home);
