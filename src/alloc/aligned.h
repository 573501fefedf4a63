// aligned: blocks at multiples of a power of two; see aligned.c.
#pragma once

#include <stddef.h>

#include "alloc/malloc.h"
#include "base/compiler.h"

// A block of `bytes` at a multiple of `alignment`, a power of two. NULL, and errno, when memory is
// out. Any thread.
TSL_HIDDEN void *tsl_aligned(size_t alignment, size_t bytes);

// The same by the fast path where every block lies so.
TSL_ALWAYS_INLINE void *tsl_fast_aligned(size_t alignment, size_t bytes) {
  if (alignment <= TSL_BLOCK_ALIGNMENT) return tsl_fast_malloc(bytes);
  return tsl_aligned(alignment, bytes);
}
