// large: blocks of whole units, too large for a slab. The map names the first unit only; the rest
// of the map stays zero, so that a pointer into the middle is known for what it is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/region.h"

// Allocates a block of at least `bytes`, aligned to `alignment` (a power of two; up to 64 KiB it
// costs nothing). Writes `entry` to the map. NULL when memory is out. `*clean`: the block reads as
// zero. Any thread.
TSL_HIDDEN void *tsl_large_alloc(size_t bytes, size_t alignment, uint32_t entry, bool *clean);

// Usable bytes of a large block.
TSL_HIDDEN size_t tsl_large_bytes(const void *block);

// Frees the block. While its place is detained (detention.h), a use of it faults. Any thread.
TSL_HIDDEN void tsl_large_free(void *block);

// Grows or shrinks without moving. False, and nothing changed, when there is no room.
TSL_HIDDEN bool tsl_large_resize(void *block, size_t bytes);

// Moves the contents to a larger new block, and frees the old one: by moving pages where that pays
// and the system can, otherwise by copying. A block that grew little has room for more. NULL, and
// nothing changed, when `bytes` is no more than the block has, or memory is out.
TSL_HIDDEN void *tsl_large_move(void *block, size_t bytes);
