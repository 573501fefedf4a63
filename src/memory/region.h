// region: the one stretch of address space in which everything of ours lies, and the map that tells
// whose each unit is.
//
//   base                                                                             base + span
//   | map | units | gap | records | cells | granules | segments | kept | heaps | stores | epochs |
//
// The region is a plan: each part has memory from its beginning to where it is in use, and grows
// there (growth.h). Where the system maps nothing at addresses that it is asked for, the region is
// reserved as a whole instead.
//
//  R1  base is a multiple of span, a power of two: two addresses inside differ in bits below span
//      only
//  R2  the map can be read below `units`; an entry is zero unless its unit belongs to a heap
//  R3  the map, the records and the units below `units` have memory. The exception are holes: units
//      where something else was mapped when growth came there. Nobody takes those
//  R4  growth maps memory, then raises `units`, then marks the units free in their segment. So a
//      unit that can be taken has memory, and after a fork between two of the steps no unit is
//      opened twice
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

enum {
  TSL_UNIT_LOG2 = 16,
  TSL_SEGMENT_UNITS = 2048,
  TSL_GROWTH_UNITS = 512,
  TSL_LEAST_GROWTH_UNITS = 8,
  TSL_MOST_HEAPS = (1 << 24) - 2,  // the next two numbers are no heap's (entry.h)
  TSL_MOST_EPOCHS = 1 << 24,
  TSL_HEAP_BYTES = 17 * TSL_CACHE_LINE,
  TSL_STORE_BYTES = (TSL_SECURE ? 120 : 112) * TSL_CACHE_LINE,
  TSL_EPOCH_BYTES = 4 * TSL_CACHE_LINE,
  TSL_CELLS_BYTES = 9 * TSL_CACHE_LINE,
  TSL_GRANULE_LOG2 = 4,  // each granule of memory has a byte
  TSL_GRANULES_BYTES = 1 << (TSL_UNIT_LOG2 - TSL_GRANULE_LOG2),  // of a unit
  TSL_KEPT_LOG2 = TSL_GRANULE_LOG2 + 3,                   // each granule has a bit, too (kept.h)
  TSL_KEPT_BYTES = 1 << (TSL_UNIT_LOG2 - TSL_KEPT_LOG2),  // of a unit
};
#define TSL_UNIT_BYTES ((size_t)1 << TSL_UNIT_LOG2)

// A unit is named by its distance from the region's base; 0 is the map's own and means "none".
typedef uint32_t tsl_unit;

struct tsl_region {
  size_t limit_units;   // [const] units end here, counted from base
  size_t limit_heaps;   // [const] heap numbers are below this
  size_t limit_epochs;  // [const] epoch slots are below this
  size_t first_unit;    // [const] first unit that can be taken
  uintptr_t segments;   // [const] address of segment 0's record
  uintptr_t stores;     // [const] address of heap 0's store
  uintptr_t heaps;      // [const] address of heap 0, which nobody uses
  uintptr_t epochs;     // [const] address of the default epoch's record
  uintptr_t kept;       // [const] the bit of an address is in the byte at kept + address / 128
  uintptr_t cells;      // [const] address of unit 0's cell records
  uintptr_t records;    // [const] address of unit 0's slab record
  uintptr_t granules;   // [const] the byte of an address is at granules + address / 16
  size_t span_bytes;    // [const]
  uintptr_t base;       // [const] also the address of the map
  // From here on nothing is ever reset: threads may read it at any time.
  size_t units;         // [lock:grow, read by any] units opened so far, counted from base
  uint32_t last_heap;   // [lock:grow, read by any] the highest heap number in use
  uint32_t last_epoch;  // [lock:grow, read by any] the highest epoch slot in use
  size_t hole_units;    // [lock:grow, read by any] of `units`: in holes
  uint32_t has_kept;    // [lock:grow, read by any] the bits of `kept` have memory
};

TSL_HIDDEN extern struct tsl_region tsl_region;

TSL_ALWAYS_INLINE uint32_t *tsl_map_entry(size_t unit) {
  return (uint32_t *)tsl_region.base + unit;
}

TSL_ALWAYS_INLINE size_t tsl_unit_of(const void *address) {
  return ((uintptr_t)address - tsl_region.base) >> TSL_UNIT_LOG2;
}
TSL_ALWAYS_INLINE uintptr_t tsl_unit_address(size_t unit) {
  return tsl_region.base + (unit << TSL_UNIT_LOG2);
}

// The byte of the granule that an address lies in.
TSL_ALWAYS_INLINE uint8_t *tsl_granule_at(uintptr_t address) {
  return (uint8_t *)(tsl_region.granules + (address >> TSL_GRANULE_LOG2));
}

// R2: the map entry of an address, 0 for any address that is not ours.
TSL_ALWAYS_INLINE uint32_t tsl_map_lookup(const void *address) {
  size_t unit = tsl_unit_of(address);
  return unit < tsl_load_relaxed(&tsl_region.units) ? tsl_load_relaxed(tsl_map_entry(unit)) : 0;
}
