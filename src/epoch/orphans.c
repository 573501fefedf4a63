#include "epoch/orphans.h"

#include "base/lock.h"
#include "epoch/scope.h"
#include "heap/remote.h"
#include "state/change.h"
#include "state/mend.h"
#include "state/owner.h"
#include "upkeep/pool.h"
#include "upkeep/remains.h"

bool tsl_orphans_wait;

// NULL while the heap of that number is not ready.
static struct tsl_heap *heap_if_ready(uint32_t number) {
  struct tsl_heap *heap = tsl_heap_at(number);
  return tsl_heap_is_ready(heap) ? heap : NULL;
}

static void home_after_fork(struct tsl_home *home) {
  if (home->hold == TSL_HOME_POOLED) tsl_store_relaxed(&home->hold, TSL_HOME_OWNED);
  home->telling = false;
  home->unwinding = false;
  home->heap.depth = 0;
  home->heap.name = TSLAB_DEFAULT;
}

// Nobody ends the free of a lost thread: it becomes a scope, which a close passes over and the
// adoption ends.
static void part_after_fork(struct tsl_part *part) {
  part->heap.depth += part->frees;
  part->frees = 0;
}

void tsl_orphans_after_fork(const struct tsl_home *mine) {
  tsl_pool_forget();
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = heap_if_ready(number);
    if (heap == NULL || heap->home == mine) continue;
    if (heap->torn == TSL_HEAP_WHOLE) tsl_store_relaxed(&heap->torn, TSL_HEAP_PERHAPS_TORN);
    if (tsl_heap_is_home(heap)) {
      home_after_fork(heap->home);
    } else {
      part_after_fork(tsl_part_of(heap));
    }
  }
  tsl_store_relaxed(&tsl_orphans_wait, tsl_region.last_heap != 0);
}

// A part of the thread that forked is torn when another thread was laying it down (inspect.c).
static void part_adopt(struct tsl_heap *part, const struct tsl_home *mine) {
  if (part->depth != 0 || part->torn == TSL_HEAP_TORN) tsl_heap_mend(part);  // pairs: heap-torn
  tsl_store_relaxed(&part->torn, TSL_HEAP_WHOLE);
  tsl_store_relaxed(&tsl_part_of(part)->shut, 0);  // by a lost thread
  if (part->home != mine) part->depth = 0;
}

// Pools an orphaned home. Not one that is `mine`, nor one that is no longer OWNED: a signal handler
// forked while this thread took or pooled that home, and the thread then went on. The home is
// pooled last: the child's new threads take it from there.
static void home_adopt(struct tsl_home *home, const struct tsl_home *mine) {
  if (home == mine) tsl_store_relaxed(&home->heap.torn, TSL_HEAP_WHOLE);
  if (home == mine || tsl_load_relaxed(&home->hold) != TSL_HOME_OWNED) return;
  tsl_owner_act_for(home);
  tsl_remote_send_all(home);
  tsl_remote_forget(home);
  tsl_home_pool(home);
}

// Called for parts first, then for homes: a thread that takes a pooled home finds its parts mended.
static void adopt_all(const struct tsl_home *mine, bool homes) {
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = heap_if_ready(number);
    if (heap == NULL || heap->torn == TSL_HEAP_WHOLE) continue;
    if (tsl_change_is_on(heap->home) && heap->torn != TSL_HEAP_TORN) continue;
    if (homes != tsl_heap_is_home(heap)) continue;
    if (!homes) part_adopt(heap, mine);
    if (homes) home_adopt(heap->home, mine);
  }
}

// The thread stands on the empty home meanwhile: a signal handler may have interrupted it in its
// own heap.
static void adopt_for(struct tsl_heap *current) {
  tsl_heap_current = &tsl_home_empty.heap;
  tsl_remains_let_go();
  adopt_all(current->home, false);
  adopt_all(current->home, true);
  tsl_scope_after_fork();
  tsl_heap_current = current;
}

void tsl_orphans_adopt(void) {
  struct tsl_heap *current = tsl_heap_current;
  if (!tsl_load_relaxed(&tsl_orphans_wait) || tsl_change_is_on(current->home)) return;
  if (tsl_locks_held != 0) return;  // pairs: locks-held
  tsl_busy_begin();
  if (tsl_exchange_relaxed(&tsl_orphans_wait, false)) adopt_for(current);
  tsl_busy_end();
}

// The child may have new threads by now, which may be entering an epoch that has ended.
void tsl_orphans_adopt_late(void) {
  tsl_scope_barrier();
  tsl_orphans_adopt();
}
