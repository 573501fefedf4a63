// slabs: the slabs of a heap. All are on the heap's list; those with room are also on the list of
// their class's stock.
#pragma once

#include "state/heap.h"

// Opens a slab, on both lists, and charges the epoch for it. NULL when memory is out, or when a
// limit refuses it: then `refused` is set. Owner only.
TSL_HIDDEN struct tsl_slab *tsl_heap_open_slab(struct tsl_heap *heap, unsigned class);

// After a slab got blocks back: lists it, or gives it back when it is empty. Owner only.
TSL_HIDDEN void tsl_heap_settle_slab(struct tsl_heap *heap, struct tsl_slab *slab);

// Collects up to `budget` slabs with remote frees. Owner only.
TSL_HIDDEN void tsl_heap_look_at_ready(struct tsl_heap *heap, unsigned budget);

// Tries once more to give back the empty slabs whose guard stayed. Owner only.
TSL_HIDDEN void tsl_heap_close_empty(struct tsl_heap *heap);

// Takes a slab off the list of all. Owner only, or who ends the part.
TSL_HIDDEN void tsl_slabs_unlist(struct tsl_heap *heap, tsl_unit unit);

// Keeps a live block of a declared epoch (kept.h). Any thread.
TSL_HIDDEN void tsl_slabs_keep(const void *block);

// Whether a block of a part's slab was kept since the slab was opened. A moment's value.
TSL_HIDDEN bool tsl_slabs_have_kept(const struct tsl_slab *slab);

// The rest of it for a heap with slabs: `none` is the head of its next life.
TSL_HIDDEN void tsl_heap_close_ready_slabs(struct tsl_heap *heap, uint64_t none);

// Ends the ready stack's life, so that no later push, which names the life before, succeeds (PA1),
// and collects the slabs that were on it: without a store no slab was of this life. The thread that
// seals the heap.
TSL_ALWAYS_INLINE void tsl_heap_close_ready(struct tsl_heap *heap) {
  uint64_t none = (uint64_t)++heap->life << 32;
  if (tsl_heap_has_store(heap)) return tsl_heap_close_ready_slabs(heap, none);
  tsl_store_relaxed(&heap->ready, none);
}

// Makes a slab that is on no list, and whose blocks have ended, an empty one of the heap again. The
// thread that resets the part.
TSL_HIDDEN void tsl_heap_renew_slab(struct tsl_heap *heap, struct tsl_slab *slab);

// Seals a slab (S5), and writes TSL_HEAP_SEALED to its map entries: every free of its blocks is a
// remote one from here on. The thread that seals the heap.
TSL_HIDDEN struct tsl_sealed tsl_heap_seal_slab(struct tsl_slab *slab, uint32_t holds);

// Gives back the units of a slab that was closed and is on no list. Any thread.
TSL_HIDDEN void tsl_heap_give_slab(struct tsl_slab *slab);

// H3: all slabs of the heap are on its list, and in the map as its own. The owner, outside of
// changes.
TSL_HIDDEN bool tsl_slabs_valid(const struct tsl_heap *heap);
