#include "epoch/scope.h"

#include <errno.h>

#include "epoch/large_list.h"
#include "epoch/pool.h"
#include "epoch/report.h"
#include "epoch/seal.h"
#include "os/os.h"

bool tsl_scope_fences;

void tsl_scope_init(void) { tsl_scope_fences = !tsl_os_barrier_init(); }

void tsl_scope_barrier(void) {
  tsl_fence_seq_cst();  // pairs: scope-depth
  if (!tsl_scope_fences) tsl_os_barrier();
}

void tsl_scope_end_heap(struct tsl_heap *heap, struct tsl_survivors *survivors) {
  struct tsl_epoch *epoch = tsl_epoch_at(heap->epoch);
  if (tsl_load_acquire(&epoch->heaps) != TSL_EPOCH_ENDED) return;  // pairs: epoch-heaps
  if (!tsl_heap_claim_seal(heap)) return;
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (tsl_epoch_state(word) == TSL_EPOCH_RELEASED) {
    tsl_large_list_release(heap->epoch);
    tsl_heap_release(heap);
  } else {
    tsl_heap_seal(heap, survivors);
  }
}

void tsl_scope_leave_ended(struct tsl_heap *heap) {
  struct tsl_survivors ignored = {0};
  tsl_scope_end_heap(heap, &ignored);
}

static uint32_t *last_part(struct tsl_heap *home, uint32_t slot) {
  return &home->store->parts[slot % TSL_HEAP_PARTS];
}

static bool is_part_of(uint32_t number, uint32_t slot) {
  const struct tsl_heap *heap = tsl_heap_at(number);
  return number != 0 && tsl_load_relaxed(&heap->epoch) == slot &&
         tsl_load_relaxed(&heap->sealing) == TSL_HEAP_UNSEALED;
}

// The thread's heap in an epoch, 0 when it has none yet, TSL_EPOCH_ENDED when it can get none.
static uint32_t find_heap(uint32_t slot, struct tsl_heap *home) {
  uint32_t number = *last_part(home, slot);
  if (is_part_of(number, slot)) return number;
  number = tsl_load_acquire(&tsl_epoch_at(slot)->heaps);  // pairs: epoch-heaps
  while (number != 0 && number != TSL_EPOCH_ENDED && tsl_heap_at(number)->home != home)
    number = tsl_load_relaxed(&tsl_heap_at(number)->epoch_next);
  if (number != TSL_EPOCH_ENDED) *last_part(home, slot) = number;
  return number;
}

static void give_back(struct tsl_heap *heap) {
  tsl_report_sealed(heap);
  tsl_heap_give_part(heap);
}

static int try_join(struct tsl_epoch *epoch, uint32_t slot, struct tsl_heap **joined) {
  struct tsl_heap *heap = tsl_heap_take_part(tsl_heap_current->home, slot);
  if (heap == NULL) return ENOMEM;
  if (!tsl_epoch_hold(slot)) {
    give_back(heap);
    return ECANCELED;
  }
  uint32_t head = tsl_load_relaxed(&epoch->heaps);
  do {
    if (head == TSL_EPOCH_ENDED) {
      give_back(heap);
      tsl_epoch_drain(slot, 1);
      return ECANCELED;
    }
    tsl_store_relaxed(&heap->epoch_next, head);
    tsl_store_relaxed(&heap->holds, 2);
  } while (!tsl_cas_release(&epoch->heaps, &head, heap->number));  // pairs: epoch-heaps
  *joined = heap;
  return 0;
}

// Gives the thread a heap in the epoch.
static int join(struct tsl_epoch *epoch, uint32_t slot, struct tsl_heap **joined) {
  struct tsl_heap *home = tsl_heap_current->home;
  uint8_t inside = home->inside;
  tsl_store_relaxed(&home->inside, 1);
  int error = try_join(epoch, slot, joined);
  tsl_store_relaxed(&home->inside, inside);
  return error;
}

TSL_NOINLINE static int find_or_join(tslab_epoch id, struct tsl_heap **heap) {
  int error = tsl_epoch_check(id);
  if (error != 0) return error;
  uint32_t slot = tsl_epoch_slot(id), number = find_heap(slot, tsl_heap_current->home);
  if (number == TSL_EPOCH_ENDED) return ECANCELED;
  if (number == 0) return join(tsl_epoch_at(slot), slot, heap);
  // A list that ends meanwhile may lead to that of another epoch.
  if (tsl_load_relaxed(&tsl_heap_at(number)->epoch) != slot) return ECANCELED;
  *heap = tsl_heap_at(number);
  return 0;
}

int tsl_scope_enter_slow(struct tslab_scope *scope, tslab_epoch id) {
  struct tsl_heap *heap = tsl_heap_current->home;
  int error = id == TSLAB_DEFAULT ? 0 : find_or_join(id, &heap);
  return error == 0 ? tsl_scope_enter_heap(scope, id, heap) : error;
}

int tsl_scope_refuse(struct tsl_heap *heap, tslab_epoch id) {
  tsl_scope_leave_heap(heap);
  int error = tsl_epoch_check(id);
  return error == 0 ? ECANCELED : error;
}

void tsl_scope_leave_all(struct tsl_heap *home) {
  tsl_heap_current = home;
  home->depth = 0;
  for (uint32_t number = home->family; number != 0; number = tsl_heap_at(number)->family) {
    struct tsl_heap *heap = tsl_heap_at(number);
    if (heap->depth == 0) continue;
    tsl_store_relaxed(&heap->depth, 1);
    tsl_report_left(heap);
    tsl_scope_leave_heap(heap);
  }
}

void tsl_scope_after_fork(void) {
  struct tsl_survivors ignored = {0};
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = tsl_heap_at(number);
    if (heap->number == 0 || heap->epoch == 0) continue;
    if (heap->home->inside == 0) tsl_scope_end_heap(heap, &ignored);
  }
}
