// extent: the units between which the cells, slabs and large blocks of an epoch lie, so that a walk
// through them passes over the rest of the region. It only grows while the epoch lives. Any thread.
//
//  X1  each cell, slab and large block of an epoch begins in its extent
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/region.h"
#include "state/epoch.h"

struct tsl_extent {
  tsl_unit first;
  tsl_unit end;  // behind the last unit in which one begins
};

// For an epoch that begins: nothing lies there.
TSL_ALWAYS_INLINE void tsl_extent_begin(struct tsl_epoch *epoch) {
  tsl_store_relaxed(&epoch->extent_first, UINT32_MAX);
  tsl_store_relaxed(&epoch->extent_end, 0);
}

TSL_HIDDEN void tsl_extent_grow(uint32_t slot, tsl_unit unit);

// Of some moment, while others allocate in the epoch.
TSL_HIDDEN struct tsl_extent tsl_extent_of(uint32_t slot);
TSL_HIDDEN bool tsl_extent_has(uint32_t slot, size_t unit);

// Before other threads can see what begins at the unit. The default epoch has no extent.
TSL_ALWAYS_INLINE void tsl_extent_add(uint32_t slot, size_t unit) {
  if (slot != 0) tsl_extent_grow(slot, (tsl_unit)unit);
}
