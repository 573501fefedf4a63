#include "heap/freed.h"

#include "base/tools.h"
#include "heap/loose.h"
#include "heap/remote.h"
#include "heap/slabs.h"
#include "heap/visit.h"
#include "memory/purge.h"
#include "slab/canary.h"
#include "state/bin.h"
#include "state/change.h"
#include "state/misuse.h"
#include "state/neighbours.h"
#include "state/owner.h"
#include "state/quarantine.h"
#include "tell/heaps.h"

void tsl_heap_drain_bin(struct tsl_heap *heap, unsigned class, unsigned most) {
  for (; most != 0; most--) {
    void *block = tsl_bin_pop(heap, class);
    if (block == NULL) return;
    uint32_t owner = tsl_entry_owner(tsl_map_lookup(block));
    if (tsl_likely(owner == heap->number)) {
      tsl_heap_tally(heap, class)->rested++;
      tsl_heap_put_plainly(heap, class, block);
    } else {
      tsl_remote_put(owner, class, block);  // HO2
    }
  }
}

// The blocks that go back do not count as frees that met a full bin: each would send others.
static void bin_learn(struct tsl_heap *heap, unsigned class, uint32_t passed) {
  unsigned blocks = tsl_bin_passed(heap, class, passed);
  if (blocks == 0) return;
  tsl_heap_drain_bin(heap, class, blocks);
  tsl_bin_shorten(heap, class, blocks);
}

// `met_full`: the block that was freed met a full bin.
TSL_NOINLINE static void heap_tell(struct tsl_heap *heap, unsigned class, bool met_full) {
  uint32_t freed = tsl_tally_tell(tsl_heap_tally(heap, class), class);
  if (met_full) bin_learn(heap, class, freed);
  tsl_report_bin(heap, class);
  tsl_loose_add(heap, class, freed);
}

// C1: the slab's lists and the caches are touched in the change only. A helper is born after it,
// because to create a thread the C library allocates.
TSL_NOINLINE static void heap_settle(struct tsl_heap *heap, struct tsl_slab *slab, bool met_full) {
  struct tsl_change change = tsl_change_begin(heap->home);
  unsigned class = slab->class;
  tsl_heap_settle_slab(heap, slab);
  tsl_change_end(change);
  heap_tell(heap, class, met_full);
  tsl_purge_call_helper(0);
}

// Puts a block back in a slab without room, which is on no list: a change of lists. Misuse is
// reported after the change: the report may run the program's handler of SIGABRT (C3).
TSL_NOINLINE static void heap_put_unlisted(struct tsl_heap *heap, struct tsl_position position,
                                           const void *block, bool met_full) {
  struct tsl_change change = tsl_change_begin(heap->home);
  unsigned class = position.slab->class;
  bool done = tsl_slab_put(position.slab, (unsigned)position.index);
  bool is_empty = position.slab->out == 0;
  if (done) tsl_heap_settle_slab(heap, position.slab);
  tsl_change_end(change);
  if (!done) return tsl_misuse_twice(block);
  bool is_due = TSL_DECREMENT_IS_ZERO(tsl_heap_tally(heap, class)->untold);
  if (is_due || is_empty) heap_tell(heap, class, met_full);
  if (is_empty) tsl_purge_call_helper(0);
}

TSL_ALWAYS_INLINE void heap_put_at(struct tsl_heap *heap, unsigned class,
                                   struct tsl_position position, void *block, bool met_full) {
  tsl_assert(tsl_owner_is_me(heap));
  if (tsl_unlikely(position.slab->summary == 0))
    return heap_put_unlisted(heap, position, block, met_full);
  if (tsl_unlikely(!tsl_slab_put(position.slab, (unsigned)position.index)))
    return tsl_misuse_twice(block);
  bool is_due = TSL_DECREMENT_IS_ZERO(tsl_heap_tally(heap, class)->untold);
  if (tsl_unlikely(position.slab->out == 0)) return heap_settle(heap, position.slab, met_full);
  if (tsl_unlikely(is_due)) heap_tell(heap, class, met_full);
}

TSL_ALWAYS_INLINE void heap_put(struct tsl_heap *heap, unsigned class, void *block, bool met_full) {
  struct tsl_position position = tsl_slab_position(class, block);
  if (tsl_unlikely(position.index < 0)) return tsl_misuse_interior(block);
  heap_put_at(heap, class, position, block, met_full);
}

void tsl_heap_put_plainly(struct tsl_heap *heap, unsigned class, void *block) {
  heap_put(heap, class, block, false);
}

// Reports and wipes what the program wrote to a block that waited, before the block is free again.
void tsl_heap_end_quarantine(struct tsl_heap *heap, void *block) {
  tsl_quarantine_check(block, tsl_sizeclasses[tsl_class_around(block)].bytes);
  heap_put(heap, tsl_class_around(block), block, false);
}

// The block waits in the quarantine; the one that has waited longest becomes free. The canary
// is compared before the wipe, which takes it away.
static void heap_quarantine(struct tsl_heap *heap, unsigned class, void *block) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_position position = tsl_slab_position(class, block);
  if (position.index < 0) return tsl_misuse_interior(block);
  if (tsl_slab_has(position) || tsl_stock_has(&heap->store->stocks[class], block) ||
      tsl_quarantine_has(block))
    return tsl_misuse_twice(block);
  tsl_neighbours_check(heap, class, position);
  if (tsl_canary_has(block) && !tsl_canary_is_whole(block, class)) tsl_misuse_overflow(block);
  tsl_secure_wipe(block, tsl_sizeclasses[class].bytes);
  void *oldest = tsl_quarantine_swap(heap, class, block);
  if (oldest != NULL) tsl_heap_end_quarantine(heap, oldest);
  tsl_report_bin(heap, class);
}

void tsl_heap_put(struct tsl_heap *heap, unsigned class, void *block) {
  if (TSL_SECURE) return heap_quarantine(heap, class, block);
  heap_put(heap, class, block, false);
}

TSL_NOINLINE static void heap_put_in_bin(struct tsl_heap *heap, unsigned class, void *block) {
  if (tsl_unlikely(block == heap->bins[class].head)) return tsl_misuse_twice(block);
  if (!tsl_bin_push(heap, class, block)) heap_put(heap, class, block, true);
}

// Frees in a row meet the same full bin: without a call, what follows saves no register.
TSL_ALWAYS_INLINE void heap_put_hot(struct tsl_heap *heap, unsigned class, void *block) {
  bool is_full = tsl_heap_room(heap, class) <= 0 && block != heap->bins[class].head;
  if (is_full) return heap_put(heap, class, block, true);
  heap_put_in_bin(heap, class, block);
}

void tsl_heap_push(struct tsl_heap *heap, unsigned class, void *block) {
  if (TSL_SECURE) return heap_quarantine(heap, class, block);
  heap_put_hot(heap, class, block);
}

void tsl_heap_put_full(struct tsl_heap *heap, void *block, size_t code) {
  unsigned class = tsl_code_class((unsigned)code);
  heap->bins[class].room++;  // the fast path has counted the block already
  if (TSL_SECURE) return heap_quarantine(heap, class, block);
  heap_put_hot(heap, class, block);
}

void tsl_home_put_visited(struct tsl_home *home, unsigned class, void *block) {
  struct tsl_position position = tsl_slab_position(class, block);
  if (position.index < 0) return tsl_misuse_interior(block);
  if (tsl_unlikely(tsl_visit_has(home, class, position, block))) return tsl_misuse_twice(block);
  tsl_heap_push(&home->heap, class, block);
}

// A pointer into a block goes home, where it is reported.
bool tsl_home_adopt(struct tsl_home *home, uint32_t owner, unsigned class, void *block) {
  if (TSL_SECURE || class < TSL_GATHERS || !tsl_owner_is_home(owner)) return false;
  if (tsl_slab_position(class, block).index < 0) return false;
  if (block == home->heap.bins[class].head) {
    tsl_misuse_twice(block);
    return true;
  }
  if (tsl_bin_push(&home->heap, class, block)) return true;
  home->heap.store->limits[class].passed++;
  return false;
}

void tsl_heap_put_any(uint32_t entry, void *block) {
  struct tsl_home *home = tsl_heap_current->home;
  unsigned class = tsl_entry_class(entry);
  if (tsl_entry_owner(entry) != home->heap.number)
    return tsl_remote_put(tsl_entry_owner(entry), class, block);
  if (tsl_unlikely(tsl_tools_watch)) return tsl_heap_put_plainly(&home->heap, class, block);  // TO1
  tsl_heap_push(&home->heap, class, block);
}
