#include "epoch/seal.h"

#include "base/stack.h"
#include "epoch/epoch.h"
#include "epoch/misuse.h"
#include "epoch/mixed.h"
#include "epoch/pool.h"
#include "epoch/remains.h"
#include "epoch/report.h"

static size_t pages(size_t bytes) { return bytes >> TSL_CELL_PAGE_LOG2; }

// Sealed slabs without blocks whose guard the system did not take away: their epochs wait for them.
static struct tsl_stack guarded;

static uint32_t *guarded_link(uint32_t unit) { return &tsl_slab_at(unit)->ready_next; }

// Gives back a slab that has no blocks; false when its guard stays.
static bool slab_end(struct tsl_slab *slab) {
  if (tsl_slab_close(slab)) {
    tsl_heap_give_slab(slab);
    return true;
  }
  tsl_stack_push(&guarded, (uint32_t)tsl_slab_unit(slab), guarded_link);
  return false;
}

static void try_guarded(void) {
  uint32_t unit = TSL_SECURE ? tsl_stack_pop(&guarded, guarded_link) : 0;
  if (unit == 0) return;
  uint32_t epoch = tsl_span_at(unit)->epoch;
  if (slab_end(tsl_slab_at(unit))) tsl_epoch_drain(epoch, 1);
}

static bool claim(struct tsl_heap *heap) {
  uint32_t unsealed = TSL_HEAP_UNSEALED;
  while (!tsl_cas_acquire(&heap->sealing, &unsealed, TSL_HEAP_SEALING)) {  // pairs: heap-sealing
    if (unsealed != TSL_HEAP_UNSEALED) return false;
  }
  return true;
}

bool tsl_heap_claim_seal(struct tsl_heap *heap) {
  return tsl_load_acquire(&heap->depth) == 0 &&  // pairs: scope-depth
         claim(heap);
}

// Returns whether the cell was empty and went back.
static bool cell_seal(tsl_cell_number number, struct tsl_survivors *survivors, uint32_t *counts) {
  uint32_t granules = tsl_cell_out(number) == 0 ? 0 : tsl_cell_at(number)->granules;
  uint32_t objects = tsl_cell_count(number, granules, counts);
  if (tsl_cell_seal(number) == 0) {
    tsl_mixed_give(number);
    return true;
  }
  survivors->objects += objects;
  survivors->pages += pages(tsl_sizeclasses[tsl_mixed_cell_class(number)].bytes);
  return false;
}

// From here on the map says that nobody's plain free may touch the slab.
static void slab_enter_sealed(tsl_unit first, const struct tsl_sizeclass *sizeclass,
                              unsigned class) {
  uint32_t entry = (uint32_t)TSL_HEAP_SEALED << TSL_CODE_BITS | class * 2;
  for (unsigned i = 0; i < sizeclass->units; i++)
    tsl_store_relaxed(tsl_map_entry(first + i), entry);
}

static bool slab_seal(struct tsl_slab *slab, struct tsl_survivors *survivors, uint32_t *counts) {
  unsigned class = slab->class;
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[class];
  slab_enter_sealed((tsl_unit)tsl_slab_unit(slab), sizeclass, class);
  struct tsl_sealed sealed = tsl_slab_seal(slab);
  if (tsl_unlikely(sealed.twice != NULL)) tsl_misuse_both(sealed.twice);
  counts[class] += sealed.out;
  if (sealed.empty) return slab_end(slab);
  survivors->objects += sealed.out;
  survivors->pages += pages(sizeclass->slab_bytes);
  return false;
}

static void heap_forget(struct tsl_heap *heap) {
  heap->cells = 0;
  heap->cells_oldest = 0;
  heap->cell_count = 0;
  heap->cell_pages = 0;
  heap->slabs = 0;
  heap->slab_count = 0;
  heap->store = &tsl_store_empty;
  heap->mixed = false;
}

static void heap_prepare(struct tsl_heap *heap) {
  tsl_mixed_retire(heap);
  tsl_heap_close_ready(heap);
  if (tsl_heap_has_store(heap)) tsl_heap_lay_down(heap);
  tsl_tally_end(heap);
}

// The thread's own structures change from here on: see epoch/orphans.h. Returns what to leave
// with.
static uint8_t inside_enter(void) {
  struct tsl_heap *home = tsl_heap_current->home;
  uint8_t before = home->inside;
  if (home != &tsl_heap_empty) tsl_store_relaxed(&home->inside, 1);
  return before;
}

static void inside_leave(uint8_t before) {
  struct tsl_heap *home = tsl_heap_current->home;
  if (home != &tsl_heap_empty) tsl_store_relaxed(&home->inside, before);
}

static size_t bytes_of(const uint32_t *counts) {
  size_t bytes = 0;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    bytes += (size_t)counts[class] * tsl_sizeclasses[class].bytes;
  return bytes;
}

void tsl_heap_seal(struct tsl_heap *heap, struct tsl_survivors *survivors) {
  uint32_t epoch = heap->epoch, empty = 0, count, counts[TSL_CLASSES] = {0};
  uint8_t before = inside_enter();
  try_guarded();
  heap_prepare(heap);
  count = heap->cell_count + heap->slab_count;
  if (count != 0) tsl_add_relaxed(&tsl_epoch_at(epoch)->undrained, count);
  for (tsl_cell_number number = heap->cells, older; number != 0; number = older) {
    older = tsl_cell_at(number)->older;
    empty += cell_seal(number, survivors, counts);
  }
  for (tsl_unit unit = heap->slabs, next; unit != 0; unit = next) {
    next = tsl_span_at(unit)->next;
    empty += slab_seal(tsl_slab_at(unit), survivors, counts);
  }
  if (empty != count) {
    survivors->bytes += bytes_of(counts);
    tsl_remains_expect(epoch);
  }
  tsl_report_survivors(epoch, counts);
  tsl_report_sealed(heap);
  heap_forget(heap);
  tsl_store_release(&heap->sealing, TSL_HEAP_IS_SEALED);  // pairs: heap-sealing
  tsl_heap_let_go(heap);
  inside_leave(before);
  tsl_epoch_drain(epoch, empty + 1);
}

void tsl_heap_release(struct tsl_heap *heap) {
  uint32_t epoch = heap->epoch, ended = 0;
  uint8_t before = inside_enter();
  try_guarded();
  heap_prepare(heap);
  for (tsl_cell_number number = heap->cells, older; number != 0; number = older) {
    older = tsl_cell_at(number)->older;
    tsl_mixed_give(number);
  }
  tsl_add_relaxed(&tsl_epoch_at(epoch)->undrained, heap->slab_count);
  for (tsl_unit unit = heap->slabs, next; unit != 0; unit = next) {
    next = tsl_span_at(unit)->next;
    tsl_slab_clear_remote(tsl_slab_at(unit));  // a fork may have come between bit and summary
    tsl_slab_wipe(tsl_slab_at(unit));
    ended += slab_end(tsl_slab_at(unit));
  }
  tsl_report_sealed(heap);
  heap_forget(heap);
  tsl_store_release(&heap->sealing, TSL_HEAP_IS_SEALED);  // pairs: heap-sealing
  tsl_heap_let_go(heap);
  inside_leave(before);
  tsl_epoch_drain(epoch, ended + 1);
}

void tsl_heap_drained(struct tsl_slab *slab) {
  uint32_t epoch = tsl_span_at(tsl_slab_unit(slab))->epoch;
  bool ended = slab_end(slab);
  if (ended) tsl_epoch_drain(epoch, 1);
  try_guarded();
}
