// sizeclass: which sizes share a slab (sizeclass.def). Size 0 gets 16 bytes; in the hardened build
// only where there is no address for it (zero.h). Worst waste: 15 bytes up to 128, a fifth of the
// block above.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "memory/region.h"

enum {
  TSL_TINY_LIMIT = 1024,    // largest size whose class a table tells
  TSL_SMALL_LIMIT = 32768,  // largest size that lives in a slab
  TSL_BLOCK_ALIGNMENT = 16,
  TSL_BIN_BYTES = 16,  // a bin's size: offsets are multiples of it
};

enum {
#define TINY(least, bytes) TSL_CLASS_OF_##bytes,
#define MEDIUM(bytes, units) TSL_CLASS_OF_##bytes,
#include "slab/sizeclass.def"
#undef TINY
#undef MEDIUM
  TSL_CLASSES
};

// Cells (slab/cell.h) are blocks of three more classes, which only the allocator itself asks for.
enum {
  TSL_CELL_4K = TSL_CLASSES,
  TSL_CELL_16K,
  TSL_CELL_64K,
  TSL_BINS,
};

struct tsl_sizeclass {
  uint32_t bytes;       // of a block
  uint32_t slab_bytes;  // a power of two, and what its slabs are aligned to
  uint32_t slab_mask;   // slab_bytes - 1
  uint16_t capacity;    // blocks in a slab
  uint16_t units;       // of a slab
};

_Static_assert(sizeof(struct tsl_sizeclass) == TSL_BIN_BYTES, "a bin's offset is its class's");
_Static_assert(offsetof(struct tsl_sizeclass, bytes) == 0, "and there is how large a block is");

TSL_HIDDEN extern const struct tsl_sizeclass tsl_sizeclasses[TSL_BINS];

// By class: ceil(2^64 / bytes).
TSL_HIDDEN extern const uint64_t tsl_reciprocals[TSL_BINS];

// How many blocks of the class fit into `offset` bytes, and whether nothing remains. One
// multiplication says both: the product's lower half is the remainder's share (Lemire, Kaser, Kurz,
// "Faster remainder by direct computation", 2019).
TSL_ALWAYS_INLINE size_t tsl_sizeclass_divide(unsigned class, size_t offset, bool *exact) {
  uint64_t reciprocal = tsl_reciprocals[class];
  unsigned __int128 product = (unsigned __int128)offset * reciprocal;
  *exact = (uint64_t)product < reciprocal;
  return (size_t)(product >> 64);
}

// The offset of a class's bin from the heap's address, and of the class in the table of size
// classes, in bytes.
TSL_ALWAYS_INLINE size_t tsl_class_offset(unsigned class) { return class * (size_t)TSL_BIN_BYTES; }
TSL_ALWAYS_INLINE unsigned tsl_offset_class(size_t offset) {
  return (unsigned)(offset / TSL_BIN_BYTES);
}

// By size, up to TSL_TINY_LIMIT: the offset of the class's bin.
TSL_HIDDEN extern const uint16_t tsl_tiny_offsets[TSL_TINY_LIMIT + 1];

TSL_ALWAYS_INLINE unsigned tsl_sizeclass_of_tiny(size_t bytes) {
  return tsl_offset_class(tsl_tiny_offsets[bytes]);
}

// `bytes` from TSL_TINY_LIMIT + 1 to TSL_SMALL_LIMIT.
TSL_ALWAYS_INLINE unsigned tsl_sizeclass_of_medium(size_t bytes) {
  unsigned doubling = tsl_highest_bit(bytes - 1);
  unsigned quarter = (unsigned)((bytes - 1) >> (doubling - 2)) & 3;
  return TSL_CLASS_OF_1280 + (doubling - 10) * 4 + quarter;
}

TSL_ALWAYS_INLINE unsigned tsl_sizeclass_of(size_t bytes) {
  return bytes <= TSL_TINY_LIMIT ? tsl_sizeclass_of_tiny(bytes) : tsl_sizeclass_of_medium(bytes);
}
