// growth: how the region comes into use: it finds a place, and each of its parts grows there as it
// is needed. R1 to R4 (region.h) are kept here, under one lock.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "memory/region.h"

// Finds a place for the region, and memory for the beginnings of its arrays. False when the system
// has none; may then be tried again.
TSL_HIDDEN bool tsl_region_init(void);

// Opens units at the region's end for somebody who wants so many, and some more (a quarter of what
// is open, from TSL_LEAST_GROWTH_UNITS to TSL_GROWTH_UNITS) while the system gives them: large
// wants get huge pages where option `thp` allows. False when there is no more, or the system
// refuses. Any thread.
TSL_HIDDEN bool tsl_region_grow(size_t wanted_units);

// Whether the unit may be part of a huge page.
TSL_HIDDEN bool tsl_region_is_huge(tsl_unit unit);

// The same as tsl_region_grow for a smaller block, which wants so many units for its alignment.
TSL_HIDDEN bool tsl_region_grow_for(size_t wanted_units, size_t block_units);

// Makes open units zero and one mapping with their neighbours again, after pages were moved to them
// (tsl_os_renew). False when the system refuses; then they must never be used again. Any thread.
TSL_HIDDEN bool tsl_region_renew(tsl_unit first, size_t units);

// A place for one more heap, readable, writable and zero: its number. 0 when there is no more, or
// the system refuses. Any thread.
TSL_HIDDEN uint32_t tsl_region_add_heap(void);

// The same for an epoch's record.
TSL_HIDDEN uint32_t tsl_region_add_epoch(void);

// Calls `visit` for each stretch of the allocator's own records that has memory.
TSL_HIDDEN void tsl_region_each_part(void (*visit)(uintptr_t start, size_t bytes, void *context),
                                     void *context);

// The same for the units that are open.
TSL_HIDDEN void tsl_region_each_run(void (*visit)(uintptr_t start, size_t bytes, void *context),
                                    void *context);

// In the child of a fork: takes over what a thread held that the child does not have.
TSL_HIDDEN void tsl_region_after_fork(void);
