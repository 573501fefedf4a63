// units: runs of units, in whichever segments they lie. A run longer than a segment takes whole
// segments; where there is no room, the region grows.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "memory/region.h"

// Takes `count` neighbouring units whose first is a multiple of `alignment` units (a power of two)
// from the address 0. 0 when neither the segments nor the system have them. `*clean` tells whether
// all of it reads as zero.
TSL_HIDDEN tsl_unit tsl_units_take(size_t count, size_t alignment, bool *clean);

// Takes the units [first, first + count) when all of them are free. No growth, no waiting.
TSL_HIDDEN bool tsl_units_take_at(tsl_unit first, size_t count, bool *clean);

// Gives units back, dirty.
TSL_HIDDEN void tsl_units_give(tsl_unit first, size_t count);

// The same for units to which pages were moved: they are marked, and mapped anew when they are
// purged; at once in the secure build, and where too many would be marked. What the system refuses
// to map anew is never used again.
TSL_HIDDEN void tsl_units_give_moved(tsl_unit first, size_t count);

// Gives units back that read as zero, and of which none is marked.
TSL_HIDDEN void tsl_units_give_clean(tsl_unit first, size_t count);

// Maps units anew (tsl_region_renew); then they are not marked, and read as zero. False when the
// system refuses: they must never be used again. Whoever has them.
TSL_HIDDEN bool tsl_units_renew(tsl_unit first, size_t count);

// How many of the units are marked. Whoever has them.
TSL_HIDDEN size_t tsl_units_count_moved(tsl_unit first, size_t count);

// Purges one run of at most `most` dirty free units, or one huge page, looking from segment
// `*cursor` on. Returns the units purged; 0 when there were none or the system refused.
TSL_HIDDEN size_t tsl_units_purge(size_t *cursor, size_t most);

// Units open so far, and those of them that are free; a moment's value.
TSL_HIDDEN size_t tsl_units_open(void);
TSL_HIDDEN size_t tsl_units_free(void);
