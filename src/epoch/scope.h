// scope: a thread's stay in an epoch. Entering makes the thread's heap in that epoch the current
// one, leaving takes back the one before.
//
// Whether an epoch may be sealed is decided without a lock (Dekker 1965, with the fence moved to
// the rare side): entering raises the heap's depth and then looks at the epoch's state; closing
// changes the state, makes every thread of the process pass a barrier, and then looks at the
// depths. So either the entering thread sees that the epoch has ended, or the closing one sees that
// somebody is inside, and leaves the heap to that thread.
#pragma once

#include <errno.h>

#include "epoch/seal.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "state/owner.h"
#include "tell/heaps.h"

// The system has no barrier for the rare side: entering and leaving pay for one.
TSL_HIDDEN extern bool tsl_scope_fences;

TSL_ALWAYS_INLINE void tsl_scope_fence(void) {
  tsl_compiler_fence();                                     // pairs: scope-depth
  if (tsl_unlikely(tsl_scope_fences)) tsl_fence_seq_cst();  // pairs: scope-depth
}

// The rest of entering when the thread's heap is not the first on the epoch's list.
TSL_HIDDEN int tsl_scope_enter_slow(struct tslab_scope *scope, tslab_epoch id);

// The rest of entering when the epoch of the heap has ended, or is another one. Returns the error.
TSL_HIDDEN int tsl_scope_refuse(struct tsl_heap *heap, tslab_epoch id);

// The rest of finding a thread's heap in an epoch that is none of its last ones. The heap that it
// takes the place of among these may give a cell back.
TSL_HIDDEN struct tsl_heap *tsl_scope_heap_slow(uint32_t place);

// Where a thread notes its part in an epoch, among its last ones; what stands there may be another
// epoch's, or one that has ended.
TSL_ALWAYS_INLINE uint32_t *tsl_scope_last_part(struct tsl_home *home, uint32_t place) {
  return &home->own->parts[place % TSL_HOME_PARTS];
}
TSL_ALWAYS_INLINE bool tsl_scope_is_part_of(uint32_t number, uint32_t place) {
  if (number == 0) return false;
  const struct tsl_part *part = tsl_part_at(number);
  return tsl_load_relaxed(&part->heap.epoch) == place &&
         tsl_load_relaxed(&part->sealing) == TSL_PART_UNSEALED;
}

// The thread's heap in an epoch, by its slot; NULL when there is none. The thread has a home.
TSL_ALWAYS_INLINE struct tsl_heap *tsl_scope_heap(uint32_t place) {
  uint32_t number = *tsl_scope_last_part(tsl_heap_current->home, place);
  bool is_last = tsl_scope_is_part_of(number, place);
  return tsl_likely(is_last) ? tsl_heap_at(number) : tsl_scope_heap_slow(place);
}

// Reports a part as one of its scopes is left. The first 64 scopes are all reported, and those of a
// thread that leaves few. Of others at most one in 64 of the part's scopes is unreported at any
// time, and every 1,024th is reported at the latest. What the thread did in the others is reported
// with the next, at a tick within a scope, with each 512 KiB of a class, and when the epoch ends.
TSL_HIDDEN void tsl_scope_tell(struct tsl_heap *heap);

// The same for a visit. Of visits and scopes in quick succession, 16 may then be unreported.
TSL_HIDDEN void tsl_scope_tell_visit(struct tsl_heap *heap);

// Reports a part after a free from outside. Each is reported where they come seldom; of many in
// quick succession at most three quarters are unreported, and at most 1,023.
TSL_HIDDEN void tsl_scope_tell_free(struct tsl_part *part);

// The same for a visit in a shared epoch; ends the visit.
TSL_HIDDEN void tsl_scope_tell_shared(struct tsl_heap *heap);

// The rest of leaving a heap whose epoch has ended.
TSL_HIDDEN void tsl_scope_leave_ended(struct tsl_heap *heap);

// The first half of entering: no seal of the heap begins from here on.
TSL_ALWAYS_INLINE void tsl_scope_raise(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  tsl_store_relaxed(&heap->depth, heap->depth + 1);
  tsl_scope_fence();
}

// The second half: unless one has begun already, because the epoch has ended.
TSL_ALWAYS_INLINE int tsl_scope_begin(struct tslab_scope *scope, tslab_epoch id,
                                      struct tsl_heap *heap) {
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  if (tsl_unlikely(tsl_load_acquire(&epoch->word) !=  // pairs: epoch-word
                   tsl_epoch_open_word(id)))
    return tsl_scope_refuse(heap, id);
  *scope = (struct tslab_scope){id, heap, tsl_heap_current, heap->depth, heap->name};
  heap->name = id;
  tsl_heap_current = heap;
  return 0;
}

// Enters the epoch by the thread's heap there.
TSL_ALWAYS_INLINE int tsl_scope_enter_heap(struct tslab_scope *scope, tslab_epoch id,
                                           struct tsl_heap *heap) {
  tsl_scope_raise(heap);
  return tsl_scope_begin(scope, id, heap);
}

// The thread's heap in the epoch, when the epoch is open and the heap is the first on its list;
// else NULL. An id of an earlier epoch leads to no heap: who closes the later one would find
// somebody inside.
TSL_ALWAYS_INLINE struct tsl_heap *tsl_scope_find(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (tsl_unlikely(slot - 1 >= tsl_load_relaxed(&tsl_region.last_epoch))) return NULL;
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (tsl_unlikely(tsl_load_relaxed(&epoch->word) != tsl_epoch_open_word(id))) return NULL;
  uint32_t place = tsl_load_relaxed(&epoch->place);
  uint32_t number = tsl_load_acquire(&tsl_epoch_at(place)->heaps);  // pairs: epoch-heaps
  if (tsl_unlikely(!tsl_epoch_names_heap(number))) return NULL;
  struct tsl_heap *heap = tsl_heap_at(number);
  return tsl_likely(heap->home == tsl_heap_current->home) ? heap : NULL;
}

// Enters an epoch; the thread has a heap. 0, ESTALE, ECANCELED or ENOMEM.
TSL_ALWAYS_INLINE int tsl_scope_enter(struct tslab_scope *scope, tslab_epoch id) {
  struct tsl_heap *heap = tsl_scope_find(id);
  if (tsl_unlikely(heap == NULL)) return tsl_scope_enter_slow(scope, id);
  return tsl_scope_enter_heap(scope, id, heap);
}

TSL_ALWAYS_INLINE void tsl_scope_leave_heap(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  uint32_t depth = heap->depth - 1;
  tsl_store_release(&heap->depth, depth);  // pairs: scope-depth
  tsl_scope_fence();
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(heap->epoch)->word);
  if (tsl_likely(tsl_epoch_state(word) == TSL_EPOCH_OPEN) || depth != 0) return;
  tsl_scope_leave_ended(heap);
}

// A visit: one operation in the thread's heap in an epoch, without a scope there. False when the
// epoch has ended: another thread may seal the heap.
TSL_ALWAYS_INLINE bool tsl_scope_visit_begin(struct tsl_heap *heap, tslab_epoch id) {
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  tsl_scope_raise(heap);
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (tsl_likely(word == tsl_epoch_open_word(id))) return true;
  tsl_scope_leave_heap(heap);
  return false;
}
TSL_ALWAYS_INLINE void tsl_scope_visit_end(struct tsl_heap *heap) {
  if (tsl_unlikely(TSL_DECREMENT_IS_ZERO(heap->leaves))) tsl_scope_tell_visit(heap);
  tsl_scope_leave_heap(heap);
}

// A free from outside of the epoch in the thread's own part. The objects that survive there count:
// so unlike for scopes and visits, who ends the epoch waits until the free is over. Until then the
// thread calls nothing of the program's, and makes no helper. False, and nothing begun, when the
// epoch is not open.
TSL_ALWAYS_INLINE bool tsl_scope_free_begin(struct tsl_part *part) {
  tsl_assert(tsl_owner_is_me(&part->heap));
  tsl_store_relaxed(&part->frees, part->frees + 1);
  tsl_scope_fence();
  const struct tsl_epoch *epoch = tsl_epoch_at(part->heap.epoch);
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (tsl_likely(tsl_epoch_state(word) == TSL_EPOCH_OPEN)) return true;
  tsl_store_release(&part->frees, part->frees - 1);  // pairs: scope-depth
  return false;
}
// Returns whether the part was reported: then a helper may be missing, too.
TSL_ALWAYS_INLINE bool tsl_scope_free_end(struct tsl_part *part) {
  bool is_due = TSL_DECREMENT_IS_ZERO(part->untold);
  if (tsl_unlikely(is_due)) tsl_scope_tell_free(part);
  tsl_store_release(&part->frees, part->frees - 1);  // pairs: scope-depth
  return is_due;
}

// The same in a shared epoch: since that never ends (PL2), nobody seals the heap. A fork may find
// the thread inside.
TSL_ALWAYS_INLINE void tsl_scope_visit_shared(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap) && tsl_epoch_is_shared(tsl_epoch_at(heap->epoch)));
  tsl_store_relaxed(&heap->depth, heap->depth + 1);
  tsl_compiler_fence();  // pairs: heap-torn
}
TSL_ALWAYS_INLINE void tsl_scope_lower_shared(struct tsl_heap *heap) {
  tsl_compiler_fence();  // pairs: heap-torn
  tsl_store_relaxed(&heap->depth, heap->depth - 1);
}
TSL_ALWAYS_INLINE void tsl_scope_visit_shared_end(struct tsl_heap *heap) {
  if (tsl_unlikely(TSL_DECREMENT_IS_ZERO(heap->leaves))) return tsl_scope_tell_shared(heap);
  tsl_scope_lower_shared(heap);
}

// Reports the misuse of a scope, and returns EPERM.
TSL_HIDDEN int tsl_scope_misused(const struct tslab_scope *scope) TSL_COLD;

// The rest of leaving where the scope is one that is reported.
TSL_HIDDEN int tsl_scope_leave_told(struct tslab_scope *scope);

// The rest of leaving that is the same for all.
TSL_ALWAYS_INLINE int tsl_scope_leave_quietly(struct tslab_scope *scope, struct tsl_heap *heap) {
  tsl_heap_current = scope->outer;
  heap->name = scope->before;
  scope->heap = NULL;
  tsl_scope_leave_heap(heap);
  return 0;
}

// Leaves the innermost scope. EPERM when that is another one.
TSL_ALWAYS_INLINE int tsl_scope_leave(struct tslab_scope *scope) {
  struct tsl_heap *heap = tsl_heap_current;
  bool is_innermost =
      scope->heap == heap && scope->depth == heap->depth;  // NOLINT(clang-analyzer-*)
  if (tsl_unlikely(!is_innermost)) return tsl_scope_misused(scope);
  if (tsl_unlikely(TSL_DECREMENT_IS_ZERO(heap->leaves))) return tsl_scope_leave_told(scope);
  return tsl_scope_leave_quietly(scope, heap);
}

// Leaves all scopes that a thread which ends is still in. Its owner.
TSL_HIDDEN void tsl_scope_leave_all(struct tsl_home *home);

// In the child of a fork: seals the parts of ended epochs that lost threads would have sealed as
// they left.
TSL_HIDDEN void tsl_scope_after_fork(void);

// Seals or releases a part of an epoch that has ended. False, and nothing changed, where somebody
// is inside or did it already.
TSL_HIDDEN bool tsl_scope_end_part(struct tsl_part *part, struct tsl_survivors *survivors);

// Learns whether the system has the barrier that closing needs. Called once.
TSL_HIDDEN void tsl_scope_init(void);

// Makes every other thread of the process pass a barrier.
TSL_HIDDEN void tsl_scope_barrier(void);

// Waits for the frees in a part of another thread (tsl_scope_free_begin). Behind the barrier: those
// that begin now are refused.
TSL_HIDDEN void tsl_scope_await_frees(const struct tsl_part *part);
