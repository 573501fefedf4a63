// sizeclass: which sizes share a slab. Class 0 serves size 0 with 16 bytes; class k up to 64 serves
// 16 k bytes; above, four classes a doubling up to 32 KiB (sizeclass.def). Worst waste above 1 KiB:
// 20 %; up to 1 KiB: 15 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "memory/region.h"

enum {
  TSL_GRANULE = 16,
  TSL_TINY_LIMIT = 1024,    // largest size whose class is a multiple of the granule
  TSL_SMALL_LIMIT = 32768,  // largest size that lives in a slab
  TSL_TINY_CLASSES = TSL_TINY_LIMIT / TSL_GRANULE + 1,
#define SIZE_CLASS(bytes, units) +1
  TSL_CLASSES = TSL_TINY_CLASSES
#include "slab/sizeclass.def"
#undef SIZE_CLASS
};

struct tsl_sizeclass {
  uint32_t bytes;       // of a block
  uint32_t reciprocal;  // ceil(2^32 / bytes): index of a block = offset * reciprocal >> 32
  uint32_t slab_bytes;  // a power of two, and what its slabs are aligned to
  uint16_t capacity;    // blocks in a slab
  uint16_t units;       // of a slab
};

TSL_HIDDEN extern const struct tsl_sizeclass tsl_sizeclasses[TSL_CLASSES];

TSL_ALWAYS_INLINE unsigned tsl_sizeclass_of_tiny(size_t bytes) {
  return (unsigned)((bytes + TSL_GRANULE - 1) / TSL_GRANULE);
}

// `bytes` from TSL_TINY_LIMIT + 1 to TSL_SMALL_LIMIT.
TSL_ALWAYS_INLINE unsigned tsl_sizeclass_of_medium(size_t bytes) {
  unsigned doubling = tsl_highest_bit(bytes - 1);
  unsigned quarter = (unsigned)((bytes - 1) >> (doubling - 2)) & 3;
  return TSL_TINY_CLASSES + (doubling - 10) * 4 + quarter;
}

TSL_ALWAYS_INLINE unsigned tsl_sizeclass_of(size_t bytes) {
  return bytes <= TSL_TINY_LIMIT ? tsl_sizeclass_of_tiny(bytes) : tsl_sizeclass_of_medium(bytes);
}
