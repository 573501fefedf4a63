// quarantine: blocks that a heap of the hardened build freed last, wiped, which wait before they
// are free again. In other builds nothing is ever in it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct tsl_heap;

TSL_HIDDEN bool tsl_quarantine_has(const struct tsl_heap *heap, const void *block);

// Puts a block in. Returns the one that has waited longest, which is out from here on; NULL while
// there is room for more. Owner only.
TSL_HIDDEN void *tsl_quarantine_swap(struct tsl_heap *heap, void *block);

// Whether a block is still as it was wiped.
TSL_HIDDEN bool tsl_quarantine_is_whole(const void *block, size_t bytes);

// Reports a write to the first line of the block that came last, and wipes it again. Owner only.
TSL_HIDDEN void tsl_quarantine_look(struct tsl_heap *heap);

// Takes a block out; NULL when there is none. The owner, or who acts for it.
TSL_HIDDEN void *tsl_quarantine_take(struct tsl_heap *heap);

// Blocks of a class in it. Any thread: a moment's value.
TSL_HIDDEN size_t tsl_quarantine_blocks(const struct tsl_heap *heap, unsigned class);
