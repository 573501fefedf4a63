#include "upkeep/pool.h"

#include "heap/cells.h"
#include "heap/count.h"
#include "heap/home_units.h"
#include "heap/mixed.h"
#include "heap/part.h"
#include "heap/remote.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "heap/store.h"
#include "heap/valid.h"
#include "heap/warm.h"
#include "state/change.h"
#include "state/mend.h"
#include "state/owner.h"
#include "tell/heaps.h"
#include "upkeep/sparse.h"

enum { POOLED_LOOKS = 4 };  // slabs of a pooled heap that one look collects

// Heaps without a thread, the warmest on top.
static struct tsl_stack pool;

static uint32_t looked_at;  // [remote] the home whose turn came last

static uint32_t *pool_link(uint32_t number) { return &tsl_home_at(number)->pool_next; }

// A pooled home belongs to the thread that moves its `hold` away from POOLED.
static bool home_claim(struct tsl_home *home, uint32_t hold) {
  uint32_t pooled = TSL_HOME_POOLED;
  if (!tsl_cas_acquire(&home->hold, &pooled, hold)) return false;  // pairs: heap-hold
  if (tsl_likely(home->heap.torn == TSL_HEAP_WHOLE)) return true;
  struct tsl_change change = tsl_change_begin(home);
  tsl_heap_mend(&home->heap);
  tsl_change_end(change);
  return true;
}

static void home_unclaim(struct tsl_home *home) {
  tsl_store_release(&home->hold, TSL_HOME_POOLED);  // pairs: heap-hold
}

static struct tsl_home *pool_take(void) {
  uint32_t number = tsl_stack_pop(&pool, pool_link);
  if (number == 0) return NULL;
  if (home_claim(tsl_home_at(number), TSL_HOME_OWNED)) return tsl_home_at(number);
  // Another thread looks at it for a moment: takes the home below.
  struct tsl_home *below = pool_take();
  tsl_stack_push(&pool, number, pool_link);
  return below;
}

// In this order: a home that can be claimed is in the pool (epoch/orphans.c).
static void pool_give(struct tsl_home *home) {
  tsl_stack_push(&pool, home->heap.number, pool_link);
  home_unclaim(home);
}

struct tsl_home *tsl_home_take(void) {
  struct tsl_home *home = pool_take();
  tsl_invariant(home == NULL || tsl_heap_valid(&home->heap));
  return home != NULL ? home : tsl_home_add();
}

void tsl_home_pool(struct tsl_home *home) {
  tsl_owner_act_for(home);
  tsl_remote_send_all(home);
  home->thread = 0;
  if (home->heap.torn == TSL_HEAP_WHOLE) {
    tsl_warm_drop(home);
    tsl_home_forget_pace(home);
  }
  tsl_home_units_trim(home, 0);
  tsl_report_heap(&home->heap);
  tsl_invariant(home->heap.torn != TSL_HEAP_WHOLE || tsl_heap_valid(&home->heap));
  tsl_owner_act_for(NULL);
  pool_give(home);
  tsl_store_relaxed(&home->loosened, 1);  // a round that comes now finds it in the pool
}

static void heap_look_at(struct tsl_heap *heap) {
  tsl_heap_look_at_ready(heap, POOLED_LOOKS);
  if (tsl_heap_has_store(heap)) tsl_heap_rest(heap);
  if (tsl_heap_has_store(heap)) tsl_sparse_step(heap);
  tsl_report_heap(heap);
}

static void shared_look_at(struct tsl_heap *heap) {
  tsl_mixed_look(heap);
  heap_look_at(heap);
}

static void home_look_at(struct tsl_home *home) {
  tsl_owner_act_for(home);
  struct tsl_change change = tsl_change_begin(home);
  tsl_warm_look(home);
  tsl_cells_look(home, TSL_CELLS_FEW);
  tsl_part_visit_next(home, shared_look_at);
  heap_look_at(&home->heap);
  tsl_home_units_trim(home, 0);
  tsl_change_end(change);
  tsl_owner_act_for(NULL);
  home_unclaim(home);
}

// Looks at the next home when it has no thread. Each has its turn; the stack stays as it is.
void tsl_pool_look(void) {
  uint32_t number = tsl_home_behind(tsl_load_acquire(&looked_at));  // pairs: homes
  tsl_store_release(&looked_at, number);                            // pairs: homes
  if (number == 0 || !tsl_heap_is_ready(tsl_heap_at(number))) return;
  struct tsl_home *home = tsl_home_at(number);
  tsl_busy_begin();
  if (home_claim(home, TSL_HOME_LOOKED_AT)) home_look_at(home);
  tsl_busy_end();
}

void tsl_pool_rest(struct tsl_home *home) {
  tsl_busy_begin();
  if (home_claim(home, TSL_HOME_LOOKED_AT)) {
    tsl_owner_act_for(home);
    tsl_home_rest_all(home);
    tsl_owner_act_for(NULL);
    home_unclaim(home);
  }
  tsl_busy_end();
}

void tsl_pool_visit(void (*visit)(struct tsl_home *)) {
  struct tsl_stack visited = {0};
  tsl_busy_begin();
  for (struct tsl_home *home; (home = pool_take()) != NULL;) {
    tsl_owner_act_for(home);
    visit(home);
    tsl_owner_act_for(NULL);
    tsl_stack_push(&visited, home->heap.number, pool_link);
  }
  for (uint32_t number; (number = tsl_stack_pop(&visited, pool_link)) != 0;)
    pool_give(tsl_home_at(number));
  tsl_busy_end();
}

// F2: the count in the stack's head goes on: a pop that a signal handler's fork interrupted must
// fail.
void tsl_pool_forget(void) { tsl_stack_clear(&pool); }
