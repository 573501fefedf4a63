// guarded: what the secure build's malloc does around the blocks of slabs: behind each stands a
// canary (slab/canary.h). In other builds the blocks pass through.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

// Gives a live block of the secure build that is to have `bytes` of its class a canary. The block
// may be NULL.
TSL_HIDDEN void *tsl_guard(void *block, unsigned class, size_t bytes);

// Whether a live block has a canary, and resizing such a block in place, to 1 byte at least. False
// when it must move.
TSL_HIDDEN bool tsl_guarded_has(const void *block);
TSL_HIDDEN bool tsl_guarded_resize(void *block, size_t bytes);
