// realloc: sizes that change, and what a block's size is, with the standard's answers (errno
// included).
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

// Makes a live block of `usable` bytes one of `bytes`, more than 0, in its place: it stays there
// while it wastes less than half of itself. False when it must move.
TSL_HIDDEN bool tsl_resize_in_place(void *block, size_t usable, size_t bytes);

// Reports a size that the live block was not asked for, or cannot have been where no canary says
// so.
TSL_HIDDEN void tsl_check_size(const void *block, size_t bytes);

// Gives free memory back to the system, but for `keep_bytes`. True when there was some.
TSL_HIDDEN bool tsl_trim(size_t keep_bytes);
