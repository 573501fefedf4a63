// alloc: malloc and its family on the calling thread's current heap, with the standard's answers
// (errno included). The faces (tslab.c, override/) only translate names.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "epoch/heap.h"

// What the fast paths leave over: sizes above TSL_TINY_LIMIT, and bins that are empty.
TSL_HIDDEN void *tsl_malloc_slow(size_t bytes, struct tsl_heap *heap);
TSL_HIDDEN void *tsl_malloc_beyond_bin(size_t place, struct tsl_heap *heap);
// The bin's head, whose mark and count are taken: the count was due, or the mark another one.
TSL_HIDDEN void *tsl_malloc_odd(struct tsl_heap *heap, size_t place, struct tsl_free_block *block);
// NULL, an address outside the region, or one that no block begins at.
TSL_HIDDEN void tsl_free_outside(void *block);
// `entry` is the map entry of the block's unit, with the current heap's tag taken away.
TSL_HIDDEN void tsl_free_slow(void *block, uint32_t entry);
// Whole units. `*clean` (may be NULL) tells whether the block reads as zero.
TSL_HIDDEN void *tsl_malloc_large(size_t bytes, size_t alignment, bool *clean);
TSL_HIDDEN void *tsl_calloc_large(size_t bytes);

TSL_HIDDEN void *tsl_calloc(size_t count, size_t bytes);
TSL_HIDDEN void *tsl_realloc(void *block, size_t bytes);

// The block that a secure build has for size 0 outside of declared epochs; NULL for another size,
// and where there is none: then an ordinary block will do.
TSL_HIDDEN void *tsl_malloc_zero(size_t alignment);
TSL_ALWAYS_INLINE void *tsl_malloc_nothing(size_t bytes, size_t alignment) {
  return TSL_SECURE && tsl_unlikely(bytes == 0) ? tsl_malloc_zero(alignment) : NULL;
}

// malloc of the secure build: behind each block of a slab stands a canary.
TSL_HIDDEN void *tsl_guarded_malloc(size_t bytes);

// A block of a class of slabs, without a canary.
TSL_HIDDEN void *tsl_malloc_class(unsigned class);

// Gives a live block of the secure build that is to have `bytes` of its class a canary. The block
// may be NULL.
TSL_HIDDEN void *tsl_guard(void *block, unsigned class, size_t bytes);

// Whether a live block has a canary, and resizing such a block in place, to 1 byte at least. False
// when it must move.
TSL_HIDDEN bool tsl_guarded_has(const void *block);
TSL_HIDDEN bool tsl_guarded_resize(void *block, size_t bytes);

// The last resort before an allocation fails: what caches hold becomes free units, which serve any
// size.
TSL_HIDDEN void tsl_memory_regain(void);

// A block in the epoch of a live one, or in the default epoch when that has ended.
TSL_HIDDEN void *tsl_malloc_beside(const void *block, size_t bytes);

// `alignment` is a power of two.
TSL_HIDDEN void *tsl_aligned(size_t alignment, size_t bytes);

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
