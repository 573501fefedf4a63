// quarantine: in the hardened build, the blocks that a heap freed last, wiped. They wait here
// before they can be allocated again. In other builds it is always empty.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "state/heap.h"

// Whether a block waits in the quarantine of any heap. Any thread.
TSL_HIDDEN bool tsl_quarantine_has(const void *block);

// Puts a block in. Takes the block out that has waited longest, and returns it; NULL while there is
// room. Owner only.
TSL_HIDDEN void *tsl_quarantine_swap(struct tsl_heap *heap, unsigned class, void *block);

// Reports a write to the first line of the block that came last, and wipes it again. Owner only.
TSL_HIDDEN void tsl_quarantine_look(struct tsl_heap *heap);

// Reports a write to the first bytes of a block that was wiped, and wipes them again.
TSL_HIDDEN void tsl_quarantine_check(void *block, size_t bytes);

// Takes a block out; NULL when there is none. The owner, or who acts for it.
TSL_HIDDEN void *tsl_quarantine_take(struct tsl_heap *heap);

// Blocks of a class in it. Any thread: a moment's value.
static inline size_t tsl_quarantine_blocks(const struct tsl_heap *heap, unsigned class) {
  return TSL_SECURE ? tsl_load_relaxed(&heap->store->quarantined[class]) : 0;
}

// Each block in it is marked and counted. Owner only.
TSL_HIDDEN bool tsl_quarantine_valid(const struct tsl_heap *heap);

// Counts its blocks anew, after a fork took the owner in the middle of a swap.
TSL_HIDDEN void tsl_quarantine_recount(struct tsl_heap *heap);
