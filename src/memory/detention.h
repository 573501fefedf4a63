// detention: the places of large blocks that were freed last. Their pages are given back and made
// inaccessible, so that a use after free faults, and for a while no other block gets the place. The
// default build detains a limited number per second (option `detain_ms`), the secure build every
// block up to a size.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "memory/huge.h"
#include "memory/region.h"

enum {
  TSL_DETENTION_PLACES = TSL_SECURE ? 64 : 16,
  // A larger block costs the system more than it is worth, and may lie in huge pages; the secure
  // build's have a guard unit.
  TSL_DETENTION_MOST_UNITS = TSL_SECURE ? 128 + 1 : TSL_HUGE_LEAST_UNITS - 1,
};

// Detains the units of a freed block; those that were detained longest are given back to make room.
// False: not detained, and the caller gives the units back. Any thread.
TSL_HIDDEN bool tsl_detention_take(tsl_unit first, size_t units);

// Keeps units whose inaccessible pages the system refused to open, until tsl_detention_retry opens
// them. `pieces` of their span says whether pages were moved there. Any thread.
TSL_HIDDEN void tsl_detention_keep(tsl_unit first, size_t units);

// Tries once more to open one of the places that tsl_detention_keep keeps. Any thread.
TSL_HIDDEN void tsl_detention_retry(void);

// Gives all detained units back. Any thread.
TSL_HIDDEN void tsl_detention_end(void);

// The number of units in detention; a moment's value.
TSL_HIDDEN size_t tsl_detention_units(void);
