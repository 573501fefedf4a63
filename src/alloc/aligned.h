// aligned: blocks at multiples of a power of two; see aligned.c.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// A block of `bytes` at a multiple of `alignment`, a power of two. NULL, and errno, when memory is
// out. Any thread.
TSL_HIDDEN void *tsl_aligned(size_t alignment, size_t bytes);
