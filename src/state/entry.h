// entry: what the address map says of a unit in use: heap number << 8 | code. The code of a slab,
// or of a unit cut into cells, is twice its size class. How entries, codes and classes follow from
// each other is known here alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "memory/region.h"
#include "slab/sizeclass.h"

enum {
  TSL_CODE_BITS = 8,
  TSL_CODES = 2 * TSL_CLASSES,
  TSL_CELL_CODES = 2 * TSL_BINS,
  TSL_CODE_LARGE = 0x7e,
  // Beside the code of a home heap's slab for blocks up to TSL_TINY_LIMIT: others freed blocks that
  // the owner has not collected yet. It takes the owner's frees off the fast path (visit.h).
  TSL_CODE_VISITED = 0x80,
  // The same bit beside the code of a part's slab: a block of it was kept (kept.h). It takes the
  // owner's frees off the fast path, so that they arrive as those of other threads do.
  TSL_CODE_KEPT = TSL_CODE_VISITED,
};
_Static_assert(TSL_CELL_CODES < TSL_CODE_LARGE, "a code fits its bits");

// Numbers that no heap has: that in the map entries of sealed slabs, and the empty heap's.
enum { TSL_HEAP_NOBODY = TSL_MOST_HEAPS, TSL_HEAP_SEALED };

TSL_ALWAYS_INLINE unsigned tsl_class_code(unsigned class) { return class * 2; }
TSL_ALWAYS_INLINE unsigned tsl_code_class(unsigned code) { return code / 2; }

// The offset of the class's bin (tsl_class_offset), by the class's code.
TSL_ALWAYS_INLINE size_t tsl_code_offset(size_t code) { return code * (TSL_BIN_BYTES / 2); }

// Whether the unit is cut into cells.
TSL_ALWAYS_INLINE bool tsl_code_is_cell(unsigned code) {
  return code - TSL_CODES < TSL_CELL_CODES - TSL_CODES;
}

TSL_ALWAYS_INLINE uint32_t tsl_entry(uint32_t owner, unsigned code) {
  return owner << TSL_CODE_BITS | code;
}
TSL_ALWAYS_INLINE uint32_t tsl_entry_owner(uint32_t entry) { return entry >> TSL_CODE_BITS; }
TSL_ALWAYS_INLINE unsigned tsl_entry_code(uint32_t entry) { return entry & (TSL_CODE_VISITED - 1); }

// Of a slab, or of a unit cut into cells.
TSL_ALWAYS_INLINE unsigned tsl_entry_class(uint32_t entry) {
  return tsl_code_class(tsl_entry_code(entry));
}

// The class of the slab, or of the cell, that a block lies in.
TSL_ALWAYS_INLINE unsigned tsl_class_around(const void *block) {
  return tsl_entry_class(tsl_map_lookup(block));
}
