#include "epoch/pool.h"
#include "epoch/store.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "base/stack.h"
#include "epoch/epoch.h"
#include "epoch/home_units.h"
#include "epoch/mend.h"
#include "epoch/mixed.h"
#include "epoch/remote.h"
#include "epoch/report.h"
#include "epoch/sparse.h"

enum { LOOK_BUDGET = 4 };  // slabs of a pooled heap that one look collects

// Heaps without a thread, the warmest on top.
static struct tsl_stack pool;
static uint32_t look_next;  // [remote], relaxed: the heap to look at next, modulo their number

static uint32_t *pool_link(uint32_t number) { return &tsl_heap_at(number)->pool_next; }

// A pooled heap belongs to whoever moves its `hold` away from POOLED.
static bool heap_claim(struct tsl_heap *heap, uint32_t hold) {
  uint32_t pooled = TSL_HEAP_POOLED;
  if (!tsl_cas_acquire(&heap->hold, &pooled, hold)) return false;  // pairs: heap-hold
  if (tsl_unlikely(heap->torn != TSL_HEAP_WHOLE)) tsl_heap_mend(heap);
  return true;
}

static void heap_unclaim(struct tsl_heap *heap) {
  tsl_store_release(&heap->hold, TSL_HEAP_POOLED);  // pairs: heap-hold
}

static struct tsl_heap *pool_take(void) {
  uint32_t number = tsl_stack_pop(&pool, pool_link);
  if (number == 0) return NULL;
  if (heap_claim(tsl_heap_at(number), TSL_HEAP_OWNED)) return tsl_heap_at(number);
  // Somebody looks at it for a moment: the one below will do.
  struct tsl_heap *below = pool_take();
  tsl_stack_push(&pool, number, pool_link);
  return below;
}

// In this order: a heap that may be claimed is in the pool (epoch/orphans.c).
static void pool_give(struct tsl_heap *heap) {
  tsl_stack_push(&pool, heap->number, pool_link);
  heap_unclaim(heap);
}

struct tsl_heap *tsl_heap_take(void) {
  struct tsl_heap *heap = pool_take();
  return heap != NULL ? heap : tsl_heap_add(NULL);
}

static struct tsl_heap *part_add(struct tsl_heap *home) {
  struct tsl_heap *part = tsl_heap_add(home);
  if (part == NULL) return NULL;
  part->family = home->family;
  home->family = part->number;
  return part;
}

struct tsl_heap *tsl_heap_take_part(struct tsl_heap *home, uint32_t epoch) {
  if (home->spare == 0 && tsl_load_relaxed(&home->returned) != 0)
    home->spare = tsl_exchange_acquire(&home->returned, 0);  // pairs: returned
  struct tsl_heap *part = home->spare != 0 ? tsl_heap_at(home->spare) : part_add(home);
  if (part == NULL) return NULL;
  home->spare = part->spare;
  tsl_store_relaxed(&part->epoch, epoch);
  part->mixed = tsl_load_relaxed(&tsl_epoch_at(epoch)->first_cell) != TSL_BINS;
  tsl_store_relaxed(&part->sealing, TSL_HEAP_UNSEALED);
  tsl_store_relaxed(&part->holds, 1);
  part->sample_times = home->store->sample_times;
  part->cut_objects = 0;
  part->cut_granules = 0;
  part->freed_objects = 0;
  part->freed_granules = 0;
  part->told_granules = 0;
  part->told_freed_granules = 0;
  part->told_next = part->cell_next;
  part->told_freed = part->cell_freed;
  tsl_report_part(part);
  return part;
}

void tsl_heap_give_part(struct tsl_heap *part) {
  struct tsl_heap *home = part->home;
  tsl_store_relaxed(&part->sealing, TSL_HEAP_IS_SEALED);
  if (home == tsl_heap_current->home) {
    part->spare = home->spare;
    home->spare = part->number;
    return;
  }
  uint32_t head = tsl_load_relaxed(&home->returned);
  do {
    part->spare = head;
  } while (!tsl_cas_release(&home->returned, &head, part->number));  // pairs: returned
}

void tsl_heap_let_go(struct tsl_heap *heap) {
  bool last = tsl_load_acquire(&heap->holds) == 1;                              // pairs: heap-holds
  if (last || tsl_sub_acq_rel(&heap->holds, 1) == 1) tsl_heap_give_part(heap);  // pairs: heap-holds
}

void tsl_heap_pool(struct tsl_heap *heap) {
  tsl_remote_send_all(heap);
  heap->thread = 0;
  tsl_home_units_trim(heap, 0);
  tsl_report_heap(heap);
  pool_give(heap);
}

static void heap_look_at(struct tsl_heap *heap) {
  tsl_store_relaxed(&heap->inside, 1);
  tsl_heap_look_at_ready(heap, LOOK_BUDGET);
  tsl_heap_rest(heap);
  tsl_mixed_look(heap, TSL_MIXED_FEW);
  tsl_home_units_trim(heap, 0);
  tsl_sparse_step(heap);
  tsl_report_heap(heap);
  tsl_store_relaxed(&heap->inside, 0);
  heap_unclaim(heap);
}

// Looks at the next heap, when it has no thread; each comes to its turn, and none is moved.
void tsl_heap_look_at_pool(void) {
  uint32_t heaps = tsl_load_relaxed(&tsl_region.last_heap);
  if (heaps == 0) return;
  struct tsl_heap *heap = tsl_heap_at(tsl_add_relaxed(&look_next, 1) % heaps + 1);
  tsl_busy_begin();
  if (heap_claim(heap, TSL_HEAP_LOOKED_AT)) heap_look_at(heap);
  tsl_busy_end();
}

static void pool_visit(void (*visit)(struct tsl_heap *)) {
  struct tsl_stack visited = {0};
  tsl_busy_begin();
  for (struct tsl_heap *heap; (heap = pool_take()) != NULL;) {
    visit(heap);
    tsl_stack_push(&visited, heap->number, pool_link);
  }
  for (uint32_t number; (number = tsl_stack_pop(&visited, pool_link)) != 0;)
    pool_give(tsl_heap_at(number));
  tsl_busy_end();
}

// Blocks of one heap's slabs may rest in the bins of others: all bins first.
void tsl_heap_collect_all(void) {
  struct tsl_heap *home = tsl_heap_current->home;
  bool has_home = home != &tsl_heap_empty;
  if (has_home) tsl_heap_rest_all(home);
  pool_visit(tsl_heap_rest_all);
  pool_visit(tsl_heap_collect);
  if (has_home) tsl_heap_collect(home);
}

// The head goes on changing: a pop that a signal handler interrupted must fail.
void tsl_heap_forget_pool(void) { tsl_stack_clear(&pool); }
