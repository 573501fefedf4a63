// home_units: the empty units that a home heap keeps at hand for its thread's next slabs.
#pragma once

#include "epoch/heap.h"

// So many neighbouring units, from the home's own, from those of all threads, or from the segments;
// 0 when memory is out. Owner only.
TSL_HIDDEN tsl_unit tsl_home_units_take(struct tsl_heap *home, unsigned count);

// Gives units back: a single one to the calling thread's home while that has fewer than option
// `cache_units`: false; others to all threads. Any thread.
TSL_HIDDEN bool tsl_home_units_give(tsl_unit first, unsigned count);

// Gives what a home keeps beyond `keep` to all threads. Owner only; nothing in the empty heap.
TSL_HIDDEN void tsl_home_units_trim(struct tsl_heap *home, uint32_t keep);
