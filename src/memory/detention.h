// detention: large blocks that were freed last. Their pages have gone back to the system and fault,
// so that who still reads or writes there is stopped, and nobody gets the place soon. The default
// build detains so many a second, the secure build all up to a size.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "memory/region.h"

enum {
  TSL_DETENTION_PLACES = TSL_SECURE ? 64 : 16,
  // A larger block costs the system more than it is worth; the secure build's have a guard unit.
  TSL_DETENTION_MOST_UNITS = 128 + TSL_SECURE,
};

// Detains units that nobody uses any more. False when they have to be given back at once. Who has
// been there longest goes back. Any thread.
TSL_HIDDEN bool tsl_detention_take(tsl_unit first, size_t units);

// Keeps units of which the system does not open the guarded pages; their span says whether pages
// were moved there. Any thread.
TSL_HIDDEN void tsl_detention_keep(tsl_unit first, size_t units);

// Tries one of these places again. Any thread.
TSL_HIDDEN void tsl_detention_retry(void);

// All of them go back.
TSL_HIDDEN void tsl_detention_end(void);

// Units there; a moment's value.
TSL_HIDDEN size_t tsl_detention_units(void);
