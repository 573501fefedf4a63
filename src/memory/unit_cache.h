// unit_cache: empty units that any thread may take; their pages have memory and are often still in
// a processor's cache. A lock-free stack (Treiber 1986, with a tag against ABA); the links lie in
// the units' records, which stay mapped.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "memory/region.h"

// One unit, 0 when there is none. Any thread.
TSL_HIDDEN tsl_unit tsl_unit_cache_take(void);
TSL_HIDDEN void tsl_unit_cache_give(tsl_unit unit);

// Hands up to `most` units to their segments; returns how many. Any thread.
TSL_HIDDEN size_t tsl_unit_cache_drain(size_t most);
TSL_HIDDEN size_t tsl_unit_cache_units(void);

// The least tsl_unit_cache_units() since the last call of this: what nobody needed.
TSL_HIDDEN size_t tsl_unit_cache_low(void);
