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

#include "epoch/epoch.h"
#include "epoch/heap.h"
#include "epoch/report.h"
#include "epoch/seal.h"

// The system has no barrier for the rare side: entering and leaving pay for one.
TSL_HIDDEN extern bool tsl_scope_fences;

TSL_ALWAYS_INLINE void tsl_scope_fence(void) {
  tsl_compiler_fence();                                     // pairs: scope-depth
  if (tsl_unlikely(tsl_scope_fences)) tsl_fence_seq_cst();  // pairs: scope-depth
}

// The rest of entering when the thread's heap is not the first of the epoch's.
TSL_HIDDEN int tsl_scope_enter_slow(struct tslab_scope *scope, tslab_epoch id);

// Enters a heap whose epoch has ended, or was another one all along.
TSL_HIDDEN int tsl_scope_refuse(struct tsl_heap *heap, tslab_epoch id);

// The rest of leaving a heap whose epoch has ended.
TSL_HIDDEN void tsl_scope_leave_ended(struct tsl_heap *heap);

// Enters the epoch by the thread's heap there.
TSL_ALWAYS_INLINE int tsl_scope_enter_heap(struct tslab_scope *scope, tslab_epoch id,
                                           struct tsl_heap *heap) {
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  tsl_store_relaxed(&heap->depth, heap->depth + 1);
  tsl_scope_fence();
  if (tsl_unlikely(tsl_load_relaxed(&epoch->word) != tsl_epoch_open_word(id)))
    return tsl_scope_refuse(heap, id);
  *scope = (struct tslab_scope){id, heap, tsl_heap_current, heap->depth};
  tsl_heap_current = heap;
  return 0;
}

// The thread's heap in the epoch, when that is open and the heap the first one there; else NULL.
TSL_ALWAYS_INLINE struct tsl_heap *tsl_scope_find(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (tsl_unlikely(slot - 1 >= tsl_load_relaxed(&tsl_region.last_epoch))) return NULL;
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (tsl_unlikely(tsl_load_relaxed(&epoch->word) != tsl_epoch_open_word(id))) return NULL;
  uint32_t number = tsl_load_acquire(&epoch->heaps);  // pairs: epoch-heaps
  if (tsl_unlikely(number - 1 >= TSL_EPOCH_ENDED - 1)) return NULL;
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
  uint32_t depth = heap->depth - 1;
  tsl_store_release(&heap->depth, depth);  // pairs: scope-depth
  tsl_scope_fence();
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(heap->epoch)->word);
  if (tsl_likely(tsl_epoch_state(word) == TSL_EPOCH_OPEN) || depth != 0) return;
  tsl_scope_leave_ended(heap);
}

// Leaves the innermost scope. EPERM when that is another one.
TSL_ALWAYS_INLINE int tsl_scope_leave(struct tslab_scope *scope) {
  struct tsl_heap *heap = tsl_heap_current;
  bool is_innermost =
      scope->heap == heap && scope->depth == heap->depth;  // NOLINT(clang-analyzer-*)
  if (tsl_unlikely(!is_innermost)) return EPERM;
  if (tsl_report_is_due(heap)) tsl_report_left(heap);
  tsl_heap_current = scope->outer;
  scope->heap = NULL;
  tsl_scope_leave_heap(heap);
  return 0;
}

// A thread ends: leaves all scopes that it is still in.
TSL_HIDDEN void tsl_scope_leave_all(struct tsl_heap *home);

// A thread of the parent process is not there any more: seals those of its heaps that it was to
// seal.
TSL_HIDDEN void tsl_scope_after_fork(void);

// Seals or releases a heap of an epoch that has ended, unless somebody is inside or did it already.
TSL_HIDDEN void tsl_scope_end_heap(struct tsl_heap *heap, struct tsl_survivors *survivors);

// Learns whether the system has the barrier that closing needs. Called once.
TSL_HIDDEN void tsl_scope_init(void);

// Every other thread passes a barrier.
TSL_HIDDEN void tsl_scope_barrier(void);
