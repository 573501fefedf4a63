// kept: which live blocks the end of their epoch spares (spare.h): a bit for each granule of
// memory, set where such a block begins.
//
//  KE1  a block that is free has no bit by the time its memory can be allocated again. Who frees a
//       kept block takes its bit off before the free counts, or leaves that to the owner of the
//       block's slab, who collects it
//  KE2  the bits have memory only once an epoch keeps blocks: of any other nobody reads them
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "memory/region.h"

// Gives the bits memory, once. False when the system has none. Any thread.
TSL_HIDDEN bool tsl_kept_begin(void);

// The rest needs KE2.

TSL_ALWAYS_INLINE uint8_t *tsl_kept_byte(uintptr_t address) {
  return (uint8_t *)(tsl_region.kept + (address >> TSL_KEPT_LOG2));
}

static inline unsigned tsl_kept_bit(const void *block) {
  return 1u << ((uintptr_t)block >> TSL_GRANULE_LOG2) % 8;
}

static inline bool tsl_kept_has(const void *block) {
  unsigned byte = tsl_load_acquire(tsl_kept_byte((uintptr_t)block));  // pairs: kept
  return (byte & tsl_kept_bit(block)) != 0;
}

// Whether any block in [start, start + bytes) is kept: whole words of 1 KiB.
TSL_HIDDEN bool tsl_kept_any(uintptr_t start, size_t bytes);

// Sets the bit of a block, or takes it off. Any thread.
TSL_HIDDEN void tsl_kept_set(const void *block);
TSL_HIDDEN void tsl_kept_clear(const void *block);

// The bits of the eight granules from `address` on, which it takes off.
static inline unsigned tsl_kept_take(uintptr_t address) {
  uint8_t *byte = tsl_kept_byte(address);
  if (tsl_load_acquire(byte) == 0) return 0;  // pairs: kept
  return tsl_exchange_acq_rel(byte, 0);       // pairs: kept
}
