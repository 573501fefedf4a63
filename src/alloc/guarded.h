// guarded: what the secure build's malloc does around the blocks of slabs: behind each stands a
// canary (slab/canary.h). In other builds the blocks pass through.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

// Secure build: puts a canary behind the first `bytes` of a block of the class, and returns the
// block, which may be NULL.
TSL_HIDDEN void *tsl_guard(void *block, unsigned class, size_t bytes);

// Whether a live block has a canary. The second resizes such a block in place, to 1 byte or more;
// false when it must move.
TSL_HIDDEN bool tsl_guarded_has(const void *block);
TSL_HIDDEN bool tsl_guarded_resize(void *block, size_t bytes);
