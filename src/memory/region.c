#include "memory/region.h"

// What is read most lies on one line: from `kept` to `last_epoch`.
_Static_assert(offsetof(struct tsl_region, kept) == TSL_CACHE_LINE, "begins a line");
_Static_assert(offsetof(struct tsl_region, hole_units) == 2 * TSL_CACHE_LINE, "begins the next");
TSL_ON_LINE struct tsl_region tsl_region;
