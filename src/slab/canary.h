// canary: what the hardened build keeps behind a block of a slab, so that a write beyond the size
// that the program asked for is seen. In other builds there is none.
//
// What lies between the requested size and the block's end, at least one byte, begins with a tag of
// up to 8 bytes, of which none is 0, and is zero behind it. The tag depends on the block's address
// and on a secret of the process. The size stands out of band, in the bytes of the block's first
// two granules (of the first one where that is all): an overflow does not reach it.
//
//  K1  the first granule's byte is 0 when the block has no canary, up to TSL_CANARY_MOST while it
//      is live and has one, TSL_CANARY_WAITS in a quarantine
//  K2  a free takes the size away before it wipes the block. So a thread that sees a damaged
//      canary, and then still sees the size, has seen an overflow and not a free
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "memory/region.h"
#include "slab/sizeclass.h"

enum { TSL_CANARY_LOW_BITS = 7, TSL_CANARY_MOST = 1 << TSL_CANARY_LOW_BITS };
enum { TSL_CANARY_WAITS = 0xff };

// What a canary takes at least, and the largest size whose block lies in a slab together with it.
enum { TSL_CANARY_BYTES = TSL_SECURE ? 1 : 0 };
enum { TSL_CANARY_LIMIT = TSL_SMALL_LIMIT - TSL_CANARY_BYTES };

// Writes a canary behind `bytes` (1 to TSL_CANARY_LIMIT) of a live block whose rest is zero. The
// thread that allocates the block.
TSL_HIDDEN void tsl_canary_set(void *block, unsigned class, size_t bytes);

// The same where the rest may hold anything: for a block that is resized in place.
TSL_HIDDEN void tsl_canary_move(void *block, unsigned class, size_t bytes);

// Whether the canary of a block that has one is undamaged. The thread that owns the block.
TSL_HIDDEN bool tsl_canary_is_whole(const void *block, unsigned class);

// Takes the canary's size away. False when there is none, or another thread took it. Any thread.
TSL_HIDDEN bool tsl_canary_take(const void *block);

// Whether the canary of a live block is damaged. Others may free the block meanwhile, but its
// memory must stay readable.
TSL_HIDDEN bool tsl_canary_is_damaged(const void *block, unsigned class);

// The byte of K1.
TSL_ALWAYS_INLINE unsigned tsl_canary_low(const void *block) {
  return TSL_SECURE ? tsl_load_relaxed(tsl_granule_at((uintptr_t)block)) : 0;
}
TSL_ALWAYS_INLINE bool tsl_canary_low_is_size(unsigned low) { return low - 1 < TSL_CANARY_MOST; }

TSL_ALWAYS_INLINE bool tsl_canary_has(const void *block) {
  return tsl_canary_low_is_size(tsl_canary_low(block));
}

// The size that a block with that byte was asked for.
TSL_ALWAYS_INLINE size_t tsl_canary_bytes_of(const void *block, unsigned class, unsigned low) {
  const uint8_t *granule = tsl_granule_at((uintptr_t)block);
  size_t high = class == TSL_CLASS_OF_16 ? 0 : tsl_load_relaxed(granule + 1);
  return (high << TSL_CANARY_LOW_BITS) + low - 1;
}
TSL_ALWAYS_INLINE size_t tsl_canary_bytes(const void *block, unsigned class) {
  return tsl_canary_bytes_of(block, class, tsl_canary_low(block));
}

// What the program may use of any live block of a slab.
TSL_ALWAYS_INLINE size_t tsl_canary_usable(const void *block, unsigned class) {
  return tsl_canary_has(block) ? tsl_canary_bytes(block, class) : tsl_sizeclasses[class].bytes;
}
