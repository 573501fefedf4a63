// growth: finds an address for the region, and maps more of each of its parts as it comes into use.
// Keeps R1 to R4 (region.h) under one lock.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "memory/region.h"

// Finds an address for the region, and maps the beginnings of its arrays. False when the system
// refuses; the call may be repeated.
TSL_HIDDEN bool tsl_region_init(void);

// Opens units at the region's end: `wanted_units`, or a quarter of what is open where that is more
// (from TSL_LEAST_GROWTH_UNITS to TSL_GROWTH_UNITS, less after the system refused). False when the
// region is full, or the system refuses. Any thread.
TSL_HIDDEN bool tsl_region_grow(size_t wanted_units);

// Maps open units anew (tsl_os_renew), after pages were moved to them: they read as zero, and are
// one mapping with their neighbours again. False when the system refuses; then they must never be
// used again. Any thread.
TSL_HIDDEN bool tsl_region_renew(tsl_unit first, size_t units);

// Maps memory for one more heap and its store, which reads as zero. Returns the heap's number; 0
// when the region has no more, or the system refuses. Any thread.
TSL_HIDDEN uint32_t tsl_region_add_heap(void);

// The same for an epoch's record. Returns its slot.
TSL_HIDDEN uint32_t tsl_region_add_epoch(void);

// Maps memory for the bits of kept blocks (kept.h), once; from then on it grows with the units.
// False when the system refuses. Any thread.
TSL_HIDDEN bool tsl_region_open_kept(void);

// Calls `visit` for each mapped stretch of the allocator's own records.
TSL_HIDDEN void tsl_region_each_part(void (*visit)(uintptr_t start, size_t bytes, void *context),
                                     void *context);

// The same for the units that are open.
TSL_HIDDEN void tsl_region_each_run(void (*visit)(uintptr_t start, size_t bytes, void *context),
                                    void *context);

// In the child of a fork: takes over the lock if a lost thread held it, and mends what it guards.
TSL_HIDDEN void tsl_region_after_fork(void);
