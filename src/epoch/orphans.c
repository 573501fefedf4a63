#include "epoch/orphans.h"

#include "base/lock.h"
#include "epoch/mend.h"
#include "epoch/pool.h"
#include "epoch/remains.h"
#include "epoch/remote.h"
#include "epoch/scope.h"

bool tsl_orphans_wait;

// NULL while the heap of that number is not ready.
static struct tsl_heap *heap_if_ready(uint32_t number) {
  struct tsl_heap *heap = tsl_heap_at(number);
  return tsl_load_acquire(&heap->number) != 0 ? heap : NULL;  // pairs: heap-init
}

void tsl_orphans_after_fork(const struct tsl_heap *mine) {
  tsl_heap_forget_pool();
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = heap_if_ready(number);
    if (heap == NULL || heap->home == mine) continue;
    if (heap->torn == TSL_HEAP_WHOLE) heap->torn = TSL_HEAP_PERHAPS_TORN;
    if (heap->hold == TSL_HEAP_POOLED) tsl_store_relaxed(&heap->hold, TSL_HEAP_OWNED);
    heap->telling = false;
    heap->unwinding = false;
  }
  tsl_orphans_wait = tsl_region.last_heap != 0;
}

// A part of the thread that forked is torn when another thread was laying it down (inspect.c).
static void part_adopt(struct tsl_heap *part, const struct tsl_heap *mine) {
  if (part->depth != 0 || part->torn == TSL_HEAP_TORN) tsl_heap_mend(part);  // pairs: heap-torn
  part->torn = TSL_HEAP_WHOLE;
  if (part->home != mine) part->depth = 0;
}

// One that is not OWNED any more was pooled by the thread that a signal handler interrupted with it
// in its hands; one that is `mine` became so in the same way.
static void home_adopt(struct tsl_heap *home, const struct tsl_heap *mine) {
  if (home == mine) home->torn = TSL_HEAP_WHOLE;
  if (home == mine || tsl_load_relaxed(&home->hold) != TSL_HEAP_OWNED) return;
  tsl_heap_pool(home);
  tsl_remote_forget(home);
}

// Parts go first: a thread that takes a pooled home heap finds its parts at rest.
static void adopt_all(const struct tsl_heap *mine, bool homes) {
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = heap_if_ready(number);
    if (heap == NULL || heap->torn == TSL_HEAP_WHOLE) continue;
    if (heap->home->inside != 0 && heap->torn != TSL_HEAP_TORN) continue;
    if (homes != (heap->home == heap)) continue;
    if (!homes) part_adopt(heap, mine);
    if (homes) home_adopt(heap, mine);
  }
}

// The thread has no heap meanwhile: a signal handler may have interrupted it in its own.
void tsl_orphans_adopt(void) {
  struct tsl_heap *current = tsl_heap_current;
  if (!tsl_orphans_wait || current->home->inside != 0) return;
  if (tsl_locks_held != 0) return;  // pairs: locks-held
  tsl_busy_begin();
  tsl_orphans_wait = false;
  tsl_heap_current = &tsl_heap_empty;
  tsl_remains_let_go();
  adopt_all(current->home, false);
  adopt_all(current->home, true);
  tsl_scope_after_fork();
  tsl_heap_current = current;
  tsl_busy_end();
}

// The child may have new threads by now, which may be entering an epoch that has ended.
void tsl_orphans_adopt_late(void) {
  tsl_scope_barrier();
  tsl_orphans_adopt();
}
