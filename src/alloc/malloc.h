// malloc: malloc and free on the calling thread's current heap, with the results that the standard
// demands (errno included). The faces (tslab.c, override/) only translate names. The fast paths are
// inline, so that each face has them in its own symbol; all other cases are one tail call away.
// test/preload/instructions.txt holds the number of their instructions.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "heap/freed.h"
#include "state/heap.h"

// The cases that the fast path does not serve: sizes above TSL_TINY_LIMIT, and empty bins.
TSL_HIDDEN void *tsl_malloc_slow(size_t bytes, struct tsl_heap *heap);
TSL_HIDDEN void *tsl_malloc_beyond_bin(size_t offset, struct tsl_heap *heap);
// Goes on with a bin's head after the fast path has taken its mark and a count: the counters were
// due, or the mark was not the heap's.
TSL_HIDDEN void *tsl_malloc_odd(struct tsl_heap *heap, size_t offset, struct tsl_free_block *block);
// malloc of the secure build (guarded.h).
TSL_HIDDEN void *tsl_guarded_malloc(size_t bytes);
// A block of a class of slabs, without a canary.
TSL_HIDDEN void *tsl_malloc_class(unsigned class);
// NULL, an address outside the region, or one that no block begins at.
TSL_HIDDEN void tsl_free_outside(void *block);
// `entry` is the map entry of the block's unit XOR the current heap's tag.
TSL_HIDDEN void tsl_free_slow(void *block, struct tsl_heap *heap, uint32_t entry);
// A block of whole units. `*clean` (`clean` may be NULL): the block reads as zero.
TSL_HIDDEN void *tsl_malloc_large(size_t bytes, size_t alignment, bool *clean);
TSL_HIDDEN void *tsl_calloc_large(size_t bytes);

// The secure build's block of size 0 (zero.h), in the default epoch. NULL for any other size, or
// where there is no such block: the caller then takes an ordinary one.
TSL_HIDDEN void *tsl_malloc_zero(size_t alignment);
TSL_ALWAYS_INLINE void *tsl_malloc_nothing(size_t bytes, size_t alignment) {
  return TSL_SECURE && tsl_unlikely(bytes == 0) ? tsl_malloc_zero(alignment) : NULL;
}

// The last resort before an allocation fails: turns what caches hold into free units, which serve
// any size.
TSL_HIDDEN void tsl_memory_regain(void);

// A bin, addressed as base + offset: that costs no instruction, a sum kept in a register does.
#define TSL_BIN(heap, offset) ((struct tsl_bin *)((char *)(heap) + (offset)))

// Pops the bin's head, named `block_`, and returns `hot` from the calling function. Returns `odd`
// when the counters are due, or the block's mark is not the heap's (B2). Does not return when the
// bin ends, or the link was damaged (B1): the caller's next statements deal with that. A function
// that does nothing else needs no frame.
#define TSL_RETURN_POPPED_AS(heap, offset, hot, odd)                                        \
  do {                                                                                      \
    struct tsl_free_block *block_ = TSL_BIN(heap, offset)->head;                            \
    TSL_RETURNED(block_);                                                                   \
    uintptr_t link_ = block_->link;                                                         \
    if (tsl_unlikely(link_ >= (heap)->contained)) break;                                    \
    TSL_OPAQUE(offset);                                                                     \
    if (tsl_unlikely(TSL_COUNT_AND_TAKE(TSL_BIN(heap, offset)->until, block_->mark, heap))) \
      return odd;                                                                           \
    link_ ^= (uintptr_t)block_;                                                             \
    TSL_OPAQUE(offset);                                                                     \
    TSL_BIN(heap, offset)->head = (struct tsl_free_block *)link_;                           \
    return hot;                                                                             \
  } while (0)
#define TSL_RETURN_POPPED(heap, offset) \
  TSL_RETURN_POPPED_AS(heap, offset, block_, tsl_malloc_odd(heap, offset, block_))

TSL_ALWAYS_INLINE void *tsl_fast_malloc(size_t bytes) {
  if (TSL_SECURE) return tsl_guarded_malloc(bytes);
  struct tsl_heap *heap = tsl_heap_current;
  if (tsl_unlikely(bytes > TSL_TINY_LIMIT)) return tsl_malloc_slow(bytes, heap);
  size_t offset = tsl_tiny_offsets[bytes];
  TSL_RETURN_POPPED(heap, offset);
  return tsl_malloc_beyond_bin(offset, heap);
}

// Links a block that is free now, and marks it as the heap's (B2).
TSL_ALWAYS_INLINE void tsl_fast_mark(struct tsl_free_block *freed, uintptr_t link, void *heap) {
  freed->link = link;    // NOLINT(clang-analyzer-core.NullDereference): NULL is outside
  tsl_compiler_fence();  // pairs: bin-head; and two stores: a load of one waits for no other
  tsl_store_relaxed(&freed->mark, (uintptr_t)heap);
  tsl_compiler_fence();  // pairs: bin-head
}

// Puts a block on the bin of its class. When the bin is full, or the block its head (B3), returns
// `full` from the calling function. `code` is a variable of the caller, and stays in its register.
#define TSL_PUSH_UNLESS_FULL(heap, block, code, full)                                        \
  do {                                                                                       \
    if (tsl_unlikely(TSL_DECREMENT_IS_NEGATIVE(TSL_BIN(heap, tsl_code_offset(code))->room))) \
      return full;                                                                           \
    TSL_OPAQUE(code);                                                                        \
    uintptr_t link_ = (uintptr_t)(block);                                                    \
    if (tsl_unlikely(TSL_XOR_IS_ZERO(link_, TSL_BIN(heap, tsl_code_offset(code))->head)))    \
      return full;                                                                           \
    tsl_fast_mark(block, link_, heap);                                                       \
    TSL_OPAQUE(code);                                                                        \
    TSL_BIN(heap, tsl_code_offset(code))->head = (block);                                    \
  } while (0)

// NULL and every address outside the region fail the comparison with the open units; so does a
// misaligned address, whose lowest bits the rotation moves to the top. An address inside on which
// no slab lies has a map entry that is not this heap's.
TSL_ALWAYS_INLINE void tsl_fast_free(void *block) {
  uintptr_t base = tsl_region.base;
  size_t unit = tsl_rotate_right((uintptr_t)block - base, TSL_GRANULE_LOG2) >>
                (TSL_UNIT_LOG2 - TSL_GRANULE_LOG2);
  if (tsl_unlikely(unit >= tsl_load_operand(&tsl_region.units))) return tsl_free_outside(block);
  uint32_t entry = tsl_load_relaxed((uint32_t *)base + unit);
  struct tsl_heap *heap = tsl_heap_current;
  entry ^= heap->tag;
  if (tsl_unlikely(entry >= TSL_CODES)) return tsl_free_slow(block, heap, entry);
  size_t code = entry;
  TSL_PUSH_UNLESS_FULL(heap, block, code, tsl_heap_put_full(heap, block, code));
}
