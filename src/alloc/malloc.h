// malloc: malloc and free on the calling thread's current heap, with the standard's answers (errno
// included). The faces (tslab.c, override/) only translate names. The few instructions that nearly
// every malloc and free is are inline, so that each face has them in its own symbol; what they
// cannot do is one tail call. test/preload/instructions.txt holds their number.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "epoch/heap.h"

// What the fast paths leave over: sizes above TSL_TINY_LIMIT, and bins that are empty.
TSL_HIDDEN void *tsl_malloc_slow(size_t bytes, struct tsl_heap *heap);
TSL_HIDDEN void *tsl_malloc_beyond_bin(size_t place, struct tsl_heap *heap);
// The bin's head, whose mark and count are taken: the count was due, or the mark another one.
TSL_HIDDEN void *tsl_malloc_odd(struct tsl_heap *heap, size_t place, struct tsl_free_block *block);
// malloc of the secure build (guarded.h).
TSL_HIDDEN void *tsl_guarded_malloc(size_t bytes);
// A block of a class of slabs, without a canary.
TSL_HIDDEN void *tsl_malloc_class(unsigned class);
// NULL, an address outside the region, or one that no block begins at.
TSL_HIDDEN void tsl_free_outside(void *block);
// `entry` is the map entry of the block's unit, with the current heap's tag taken away.
TSL_HIDDEN void tsl_free_slow(void *block, uint32_t entry);
// Whole units. `*clean` (may be NULL) tells whether the block reads as zero.
TSL_HIDDEN void *tsl_malloc_large(size_t bytes, size_t alignment, bool *clean);
TSL_HIDDEN void *tsl_calloc_large(size_t bytes);

// The block that a secure build has for size 0 outside of declared epochs; NULL for another size,
// and where there is none: then an ordinary block will do.
TSL_HIDDEN void *tsl_malloc_zero(size_t alignment);
TSL_ALWAYS_INLINE void *tsl_malloc_nothing(size_t bytes, size_t alignment) {
  return TSL_SECURE && tsl_unlikely(bytes == 0) ? tsl_malloc_zero(alignment) : NULL;
}

// The last resort before an allocation fails: what caches hold becomes free units, which serve any
// size.
TSL_HIDDEN void tsl_memory_regain(void);

// A bin's address is taken apart on purpose: base + place costs no instruction, a sum kept in a
// register does.
#define TSL_BIN(heap, place) ((struct tsl_bin *)((char *)(heap) + (place)))

// B1, B2: the comparison finds the end of the bin, an empty bin, and a link that an overflow has
// changed, which go on behind this. `hot` is returned, or `odd` when the bin's counters are due or
// the block's mark was another one; the block is `block_`. A function that does nothing else needs
// no frame.
#define TSL_RETURN_POPPED_AS(heap, place, hot, odd)                                        \
  do {                                                                                     \
    struct tsl_free_block *block_ = TSL_BIN(heap, place)->head;                            \
    TSL_RETURNED(block_);                                                                  \
    uintptr_t link_ = block_->link;                                                        \
    if (tsl_unlikely(link_ >= (heap)->contained)) break;                                   \
    TSL_OPAQUE(place);                                                                     \
    if (tsl_unlikely(TSL_COUNT_AND_TAKE(TSL_BIN(heap, place)->until, block_->mark, heap))) \
      return odd;                                                                          \
    link_ ^= (uintptr_t)block_;                                                            \
    TSL_OPAQUE(place);                                                                     \
    TSL_BIN(heap, place)->head = (struct tsl_free_block *)link_;                           \
    return hot;                                                                            \
  } while (0)
#define TSL_RETURN_POPPED(heap, place) \
  TSL_RETURN_POPPED_AS(heap, place, block_, tsl_malloc_odd(heap, place, block_))

TSL_ALWAYS_INLINE void *tsl_fast_malloc(size_t bytes) {
  if (TSL_SECURE) return tsl_guarded_malloc(bytes);
  struct tsl_heap *heap = tsl_heap_current;
  if (tsl_unlikely(bytes > TSL_TINY_LIMIT)) return tsl_malloc_slow(bytes, heap);
  size_t place = tsl_tiny_places[bytes];
  TSL_RETURN_POPPED(heap, place);
  return tsl_malloc_beyond_bin(place, heap);
}

// NULL and every address that is not ours lie outside the units that are open, or on a map entry
// that is no heap's. So does a misaligned one, whose lowest bits are the highest of the quotient.
TSL_ALWAYS_INLINE void tsl_fast_free(void *block) {
  uintptr_t base = tsl_region.base;
  size_t unit = tsl_rotate_right((uintptr_t)block - base, TSL_GRANULE_LOG2) >>
                (TSL_UNIT_LOG2 - TSL_GRANULE_LOG2);
  if (tsl_unlikely(unit >= tsl_load_operand(&tsl_region.units))) return tsl_free_outside(block);
  uint32_t entry = tsl_load_relaxed((uint32_t *)base + unit);
  struct tsl_heap *heap = tsl_heap_current;
  entry ^= heap->tag;
  if (tsl_unlikely(entry >= TSL_CODES)) return tsl_free_slow(block, entry);
  size_t code = entry;
  if (tsl_unlikely(TSL_DECREMENT_IS_NEGATIVE(TSL_BIN(heap, code * 8)->room))) {
    return tsl_heap_put_full(heap, block, code);
  }
  TSL_OPAQUE(code);
  struct tsl_free_block *freed = block;
  uintptr_t link = (uintptr_t)block;
  if (tsl_unlikely(TSL_XOR_IS_ZERO(link, TSL_BIN(heap, code * 8)->head)))
    return tsl_heap_put_full(heap, block, code);
  freed->link = link;    // NOLINT(clang-analyzer-core.NullDereference): NULL is outside
  tsl_compiler_fence();  // pairs: bin-head; and two stores: a load of one waits for no other
  tsl_store_relaxed(&freed->mark, (uintptr_t)heap);
  TSL_OPAQUE(code);
  tsl_compiler_fence();  // pairs: bin-head
  TSL_BIN(heap, code * 8)->head = block;
}
