// realloc: calloc, realloc, and the sizes of blocks, with the results that the standard demands
// (errno included). Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

TSL_HIDDEN void *tsl_calloc(size_t count, size_t bytes);
TSL_HIDDEN void *tsl_realloc(void *block, size_t bytes);

// Bytes the program may use; 0 for NULL. A foreign pointer is misuse.
TSL_HIDDEN size_t tsl_usable(const void *block);

// Usable bytes that a block of `bytes` would have; 0 when no block can be so large.
TSL_HIDDEN size_t tsl_good_size(size_t bytes);

// Resizes a live block of `usable` bytes to `bytes` (not 0) without moving it. False when it must
// move: it has no room, or would waste more than half of itself.
TSL_HIDDEN bool tsl_resize_in_place(void *block, size_t usable, size_t bytes);

// The same for a block of any size, or NULL, and any number of bytes.
TSL_HIDDEN bool tsl_resize_without_move(void *block, size_t bytes);

// Reports a size that is not the one the block was asked for; where no canary tells that size, one
// that it cannot have been.
TSL_HIDDEN void tsl_check_size(const void *block, size_t bytes);

// Gives free memory back to the system, but for `keep_bytes`. True when there was some.
TSL_HIDDEN bool tsl_trim(size_t keep_bytes);
