#include "heap/part.h"

#include "heap/store.h"
#include "heap/total.h"
#include "state/bin.h"
#include "state/epoch.h"
#include "state/history.h"
#include "state/owner.h"
#include "tell/heaps.h"

enum { FEW_IN_USE = 16, MOST_BACK = 32 };

bool tsl_part_is_empty(const struct tsl_part *part) {
  const struct tsl_heap *heap = &part->heap;
  bool has_cells = heap->cells != 0 || heap->cells_oldest != 0 || heap->cell_end != 0;
  bool has_slabs = heap->slabs != 0 || heap->slab_count != 0 || heap->pending != 0;
  return !has_cells && heap->cell_count == 0 && !has_slabs && !tsl_heap_has_store(heap);
}

static bool shared_are_found(const struct tsl_home *home) {
  uint32_t number = home->own->shared, count = 0;
  for (; number != 0; number = tsl_part_at(number)->shared_next, count++)
    if (tsl_part_find_shared(home, tsl_part_at(number)->heap.epoch) != number) return false;
  return count == home->own->shared_count;
}

bool tsl_home_valid(const struct tsl_home *home) {
  const struct tsl_heap *heap = &home->heap;
  if (!tsl_heap_is_home(heap) || heap->epoch != 0 || heap->life != 0) return false;
  if (heap->store != &home->own->store) return false;
  for (uint32_t number = home->family; number != 0; number = tsl_part_at(number)->family_next)
    if (tsl_part_at(number)->heap.home != home) return false;
  return shared_are_found(home);
}

static struct tsl_part *part_add(struct tsl_home *home) {
  struct tsl_part *part = tsl_part_add(home);
  if (part == NULL) return NULL;
  part->family_next = home->family;
  home->family = part->heap.number;
  return part;
}

// The first scope that is left is reported (scope.h).
static void counts_begin(struct tsl_heap *heap) {
  heap->cut_objects = 0;
  heap->cut_granules = 0;
  heap->freed_objects = 0;
  heap->freed_granules = 0;
  heap->gone_granules = 0;
  heap->loose_granules = 0;
  heap->told_granules = 0;
  heap->told_freed_granules = 0;
  heap->leaves = 1;
}

static void heap_begin(struct tsl_heap *heap, uint32_t epoch) {
  tsl_store_relaxed(&heap->epoch, epoch);
  heap->sample_version = 0;
  unsigned first = tsl_load_relaxed(&tsl_epoch_at(epoch)->first_cell);
  heap->cell_class = first == TSL_BINS ? 0 : (uint8_t)first;
  counts_begin(heap);
}

void tsl_part_begin(struct tsl_part *part, uint32_t epoch) {
  heap_begin(&part->heap, epoch);
  part->leave_pace = 1;
  part->scopes = 0;
  part->looks = 0;
  part->rest_in = 1;
  part->rest_leaves = 0;
  part->rest_pace = 1;
  part->free_pace = 1;
  part->untold = 1;
  tsl_store_release(&part->sealing, TSL_PART_UNSEALED);  // pairs: heap-sealing
  tsl_store_relaxed(&part->holds, 1);
}

void tsl_part_renew(struct tsl_part *part) {
  tsl_assert(tsl_owner_is_me(&part->heap));
  counts_begin(&part->heap);
  tsl_report_part(part);
  tsl_report_scopes(part);
}

static uint32_t *in_use(const struct tsl_home *home, uint32_t label) {
  return &home->own->in_use[label % TSL_HOME_LABEL_PLACES];
}

static uint32_t *in_use_with(const struct tsl_part *part) {
  return in_use(part->heap.home, part->label);
}

static void spare_add(struct tsl_home *home, struct tsl_part *part) {
  part->spare_next = home->spare;
  home->spare = part->heap.number;
  *in_use_with(part) -= 1;
}

// One exchange for many parts, of which a few are counted at a time: another thread may have closed
// a hundred thousand epochs.
static void returned_take(struct tsl_home *home) {
  uint32_t *back = &home->own->back;
  if (*back == 0 && tsl_load_relaxed(&home->returned) != 0)
    *back = tsl_exchange_acquire(&home->returned, 0);  // pairs: returned
  for (unsigned i = 0; i < MOST_BACK && *back != 0; i++) {
    struct tsl_part *part = tsl_part_at(*back);
    *back = part->spare_next;
    spare_add(home, part);
  }
}

// What other threads gave back is taken only when the home's own are used up, or when it might make
// many parts few.
struct tsl_part *tsl_part_take(struct tsl_home *home, uint32_t epoch) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  uint32_t label = tsl_epoch_at(epoch)->label;
  if (home->spare == 0 || *in_use(home, label) >= FEW_IN_USE) returned_take(home);
  struct tsl_part *part = home->spare != 0 ? tsl_part_at(home->spare) : part_add(home);
  if (part == NULL) return NULL;
  home->spare = part->spare_next;
  part->label = label;
  *in_use_with(part) += 1;
  tsl_invariant(tsl_part_is_empty(part));
  tsl_part_begin(part, epoch);
  tsl_report_part(part);
  return part;
}

void tsl_part_give(struct tsl_part *part) {
  struct tsl_home *home = part->heap.home;
  tsl_invariant(tsl_part_is_empty(part));
  tsl_store_relaxed(&part->sealing, TSL_PART_SEALED);
  if (home == tsl_heap_current->home) return spare_add(home, part);
  uint32_t head = tsl_load_relaxed(&home->returned);
  do {
    part->spare_next = head;
  } while (!tsl_cas_release(&home->returned, &head, part->heap.number));  // pairs: returned
}

bool tsl_part_has_many_like(const struct tsl_part *part) {
  return *in_use_with(part) > FEW_IN_USE && tsl_history_is_known(part->label);
}

// Who alone still holds the part needs no locked instruction: nobody can come to hold it again.
void tsl_part_let_go(struct tsl_part *part) {
  bool last = tsl_load_acquire(&part->holds) == 1;                         // pairs: heap-holds
  if (last || tsl_sub_acq_rel(&part->holds, 1) == 1) tsl_part_give(part);  // pairs: heap-holds
}

// The home that a part's counts go to: the calling thread's. The child of a fork ends parts while
// its thread stands on the empty home: then the part's own, which no other thread uses.
static struct tsl_home *heir(const struct tsl_heap *part) {
  struct tsl_home *home = tsl_heap_current->home;
  return home == &tsl_home_empty ? part->home : home;
}

// Adds the counts of one class. `rest.totals` grows by the same number: inherited counts must not
// look like activity of the home (rest.c).
static void end_class(struct tsl_home *to, const struct tsl_heap *part, unsigned class) {
  const struct tsl_tally *ended = &part->store->tallies[class];
  if (ended->refills == 0) return;
  struct tsl_tally *tally = &to->heap.store->tallies[class];
  uint64_t allocations = part->store->allocations[class] - tsl_bin_ahead(&part->bins[class]);
  to->heap.store->allocations[class] += allocations;
  to->heap.store->rest.totals[class] += (uint32_t)allocations;
  tally->opened += ended->opened;
  tally->refills += ended->refills;
  tally->refilled += tsl_tally_returned(ended);
}

TSL_NOINLINE static void end_classes(struct tsl_home *to, const struct tsl_heap *part) {
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) end_class(to, part, class);
}

void tsl_part_end_tallies(const struct tsl_part *ended) {
  const struct tsl_heap *part = &ended->heap;
  struct tsl_home *to = heir(part);
  to->own->cells.ended_objects += part->cut_objects;
  to->own->cells.ended_granules += part->cut_granules;
  tsl_total_end_part(part);
  if (tsl_heap_has_store(part)) end_classes(to, part);
}

static uint32_t *shared_at(const struct tsl_home *home, uint32_t slot) {
  return &home->own->shared_by_slot[slot % TSL_HOME_SHARED_PLACES];
}

void tsl_part_share(struct tsl_part *part) {
  tsl_assert(tsl_owner_is_me(&part->heap));
  struct tsl_home *home = part->heap.home;
  part->shared_next = home->own->shared;
  home->own->shared = part->heap.number;
  home->own->shared_count++;
  uint32_t *first = shared_at(home, part->heap.epoch);
  part->slot_next = *first;
  *first = part->heap.number;
}

uint32_t tsl_part_find_shared(const struct tsl_home *home, uint32_t slot) {
  uint32_t number = *shared_at(home, slot);
  while (number != 0 && tsl_heap_at(number)->epoch != slot) number = tsl_part_at(number)->slot_next;
  return number;
}

void tsl_part_visit_inside(struct tsl_heap *heap, void (*visit)(struct tsl_heap *)) {
  tsl_assert(tsl_owner_is_me(heap));
  tsl_store_relaxed(&heap->depth, heap->depth + 1);
  tsl_compiler_fence();  // pairs: heap-torn
  visit(heap);
  tsl_compiler_fence();  // pairs: heap-torn
  tsl_store_relaxed(&heap->depth, heap->depth - 1);
}

void tsl_part_visit_shared(struct tsl_home *home, void (*visit)(struct tsl_heap *)) {
  for (uint32_t number = home->own->shared; number != 0; number = tsl_part_at(number)->shared_next)
    tsl_part_visit_inside(tsl_heap_at(number), visit);
}

void tsl_part_visit_next(struct tsl_home *home, void (*visit)(struct tsl_heap *)) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  uint32_t *turn = &home->own->shared_turn;
  *turn = *turn == 0 ? home->own->shared : tsl_part_at(*turn)->shared_next;
  if (*turn != 0) tsl_part_visit_inside(tsl_heap_at(*turn), visit);
}
