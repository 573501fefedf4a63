// aligned: blocks at multiples of a power of two; see aligned.c.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// `alignment` is a power of two.
TSL_HIDDEN void *tsl_aligned(size_t alignment, size_t bytes);
