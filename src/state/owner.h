// owner: whose a heap is: which thread may change its lists, and which kind of heap the owner in a
// map entry names. Never asked on a fast path.
#pragma once

#include "base/check.h"
#include "state/epoch.h"
#include "state/heap.h"

// Whether the owner in a map entry is a home: not a part, nor a heap that was sealed. Any thread.
static inline bool tsl_owner_is_home(uint32_t owner) {
  return owner < TSL_HEAP_NOBODY && tsl_heap_is_home(tsl_heap_at(owner));
}

// Whether it is a home, or a thread's part of a shared epoch: heaps that are never sealed (PL2).
// Any thread that has a block of it.
static inline bool tsl_owner_stays(uint32_t owner) {
  if (owner >= TSL_HEAP_NOBODY) return false;
  const struct tsl_heap *heap = tsl_heap_at(owner);
  return tsl_heap_is_home(heap) ||
         tsl_epoch_is_shared(tsl_epoch_at(tsl_load_relaxed(&heap->epoch)));
}

// The pooled home that this thread has claimed and acts for; NULL: none. Kept from debug level 1
// on.
TSL_HIDDEN extern TSL_TLS const struct tsl_home *tsl_owner_acts_for;

// The thread has claimed a home, or has let it go (NULL).
static inline void tsl_owner_act_for(const struct tsl_home *home) {
  if (TSL_DEBUG >= 1) tsl_owner_acts_for = home;
}

static inline bool tsl_owner_is_sealing(const struct tsl_heap *heap) {
  const struct tsl_part *part = (const struct tsl_part *)heap;
  return !tsl_heap_is_home(heap) && tsl_load_relaxed(&part->sealing) == TSL_PART_SEALING;
}

// H1: the heap is the thread's, or one that it acts for, or is being sealed.
static inline bool tsl_owner_is_me(const struct tsl_heap *heap) {
  bool is_mine = heap->home == tsl_heap_current->home || heap->home == tsl_owner_acts_for;
  return is_mine || tsl_owner_is_sealing(heap);
}

// What the heap counts of a class, to be changed.
TSL_ALWAYS_INLINE struct tsl_tally *tsl_heap_tally(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  return &heap->store->tallies[class];
}
