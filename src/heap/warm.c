#include "heap/warm.h"

#include "heap/cells.h"
#include "heap/charge.h"
#include "heap/extent.h"
#include "heap/freed.h"
#include "heap/mixed.h"
#include "heap/part.h"
#include "heap/remote.h"
#include "memory/limit.h"
#include "os/os.h"
#include "state/change.h"
#include "state/epoch.h"
#include "tell/heaps.h"

static size_t cell_bytes(const struct tsl_part *part) {
  return (size_t)part->heap.cell_pages << TSL_CELL_PAGE_LOG2;
}

// Who else holds the part may still look at it. Near the soft limit a cell that waits is memory
// that could go back.
bool tsl_warm_may_keep(const struct tsl_part *part) {
  const struct tsl_heap *heap = &part->heap;
  bool is_mine = heap->home == tsl_heap_current->home;
  if (!is_mine || heap->cell_end == 0 || tsl_heap_has_store(heap)) return false;
  if (heap->home->own->warm_count == TSL_HOME_WARM || tsl_limit_is_near()) return false;
  if (tsl_part_has_many_like(part)) return false;
  if (tsl_load_acquire(&part->holds) != 1) return false;  // pairs: heap-holds
  return tsl_load_relaxed(&tsl_epoch_at(heap->epoch)->is_usual) != 0;
}

void tsl_warm_keep(struct tsl_part *part) {
  struct tsl_heap *heap = &part->heap;
  struct tsl_home_store *own = heap->home->own;
  const struct tsl_epoch *epoch = tsl_epoch_at(heap->epoch);
  struct tsl_warm *warm = &own->warm[own->warm_count];
  warm->part = heap->number;
  warm->label = epoch->label;
  tsl_store_relaxed(&warm->since_ms, tsl_load_relaxed(&epoch->closed_ms));
  tsl_store_relaxed(&own->warm_count, own->warm_count + 1);
  tsl_epoch_discharge_freely(heap->epoch, cell_bytes(part));
  tsl_store_relaxed(&tsl_cell_at(heap->cells)->epoch, 0);
  tsl_store_relaxed(&heap->epoch, 0);
}

// Its cell is in use already: it is retired, so that the part is as W1 says.
void tsl_warm_return(struct tsl_part *part) {
  tsl_mixed_retire(&part->heap);
  tsl_store_relaxed(&part->sealing, TSL_PART_SEALED);
  tsl_warm_keep(part);
  tsl_report_warm(part);
}

// NULL when there is none. The one that was left last is found first.
static struct tsl_warm *warm_find(struct tsl_home_store *own, uint32_t label) {
  for (uint32_t i = own->warm_count; i != 0; i--)
    if (own->warm[i - 1].label == label) return &own->warm[i - 1];
  return NULL;
}

static struct tsl_part *warm_remove(struct tsl_home_store *own, struct tsl_warm *warm) {
  struct tsl_part *part = tsl_part_at(warm->part);
  const struct tsl_warm *last = &own->warm[own->warm_count - 1];
  warm->part = last->part;
  warm->label = last->label;
  tsl_store_relaxed(&warm->since_ms, last->since_ms);
  tsl_store_relaxed(&own->warm_count, own->warm_count - 1);
  return part;
}

// W2. A usual epoch has no limit of its own.
static bool may_take(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (tsl_load_relaxed(&epoch->is_usual) == 0) return false;
  return epoch->parent == 0 || tsl_epoch_is_charged_freely(epoch->parent);
}

struct tsl_part *tsl_warm_take(struct tsl_home *home, uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_invariant(tsl_warm_valid(home));
  struct tsl_warm *warm = warm_find(home->own, epoch->label);  // pairs: warm-fork
  if (warm == NULL || !may_take(slot)) return NULL;
  struct tsl_part *part = warm_remove(home->own, warm);
  tsl_part_begin(part, slot);
  tsl_extent_add(slot, part->heap.cells / TSL_UNIT_PAGES);
  tsl_store_relaxed(&tsl_cell_at(part->heap.cells)->epoch, slot);
  tsl_epoch_charge_freely(slot, cell_bytes(part));
  tsl_mixed_restart(&part->heap);
  return part;
}

// Takes the cell of a part, which then has nothing.
static void *part_empty(struct tsl_part *part) {
  struct tsl_heap *heap = &part->heap;
  tsl_cell_number cell = heap->cells;
  heap->cells = 0;
  heap->cells_oldest = 0;
  heap->cell_count = 0;
  heap->cell_pages = 0;
  tsl_cell_close(cell);
  return (void *)tsl_cell_address(cell);
}

// To its slab, not to the bin: nobody wants it soon.
static void part_drop(struct tsl_part *part) {
  unsigned class = tsl_cells_class(part->heap.cells);
  tsl_heap_put_plainly(&part->heap.home->heap, class, part_empty(part));
  tsl_part_give(part);
}

// W3: those that were left before `before_ms`.
static void drop_before(struct tsl_home *home, uint64_t before_ms) {
  struct tsl_change change = tsl_change_begin(home);
  struct tsl_home_store *own = home->own;
  tsl_invariant(tsl_warm_valid(home));
  for (uint32_t i = own->warm_count; i != 0; i--)
    if (own->warm[i - 1].since_ms < before_ms) part_drop(warm_remove(own, &own->warm[i - 1]));
  tsl_change_end(change);
}

void tsl_warm_look(struct tsl_home *home) {
  if (tsl_load_relaxed(&home->own->warm_count) == 0) return;
  uint64_t now_ms = tsl_os_now_ms(), delay_ms = tsl_limit_delay_ms();
  if (tsl_limit_is_near()) return tsl_warm_drop(home);
  if (now_ms > delay_ms) drop_before(home, now_ms - delay_ms);
}

void tsl_warm_drop(struct tsl_home *home) {
  if (tsl_load_relaxed(&home->own->warm_count) != 0) drop_before(home, UINT64_MAX);
}

bool tsl_warm_is_due(const struct tsl_home *home, uint64_t now_ms) {
  uint32_t count = tsl_load_relaxed(&home->own->warm_count);
  uint64_t delay_ms = tsl_limit_delay_ms();
  for (uint32_t i = 0; i < count; i++)
    if (now_ms <= tsl_load_relaxed(&home->own->warm[i].since_ms) + delay_ms) return false;
  return count != 0;
}

// W4. The cell is a block of the home's slab. The helper frees it as any other thread would, and it
// waits for the owner. Its pages go back now: a slab gives pages back only once three quarters
// of it are free.
static void last_tend(struct tsl_home *home) {
  uint32_t count = home->own->warm_count - 1;
  struct tsl_part *part = tsl_part_at(home->own->warm[count].part);
  unsigned class = tsl_cells_class(part->heap.cells);
  tsl_store_relaxed(&home->own->warm_count, count);
  tsl_compiler_fence();  // pairs: warm-fork
  tsl_cell_purge(part->heap.cells, tsl_sizeclasses[class].bytes);
  tsl_remote_put(home->heap.number, class, part_empty(part));
  tsl_part_give(part);
}

void tsl_warm_tend(struct tsl_home *home, uint64_t now_ms) {
  tsl_invariant(tsl_warm_valid(home));
  if (!tsl_warm_is_due(home, now_ms)) return;
  while (home->own->warm_count != 0) last_tend(home);
}

static bool part_valid(const struct tsl_home *home, const struct tsl_part *part) {
  const struct tsl_heap *heap = &part->heap;
  bool is_of_none = heap->epoch == 0 && heap->depth == 0 && !tsl_heap_has_store(heap);
  if (heap->home != home || !is_of_none || heap->slabs != 0 || heap->cell_count != 1) return false;
  const struct tsl_cell *cell = tsl_cell_at(heap->cells);
  bool is_empty = cell->blocks == 0 && cell->freed == 0 && heap->cell_end == 0;
  return is_empty && cell->epoch == 0 && cell->heap == heap->number &&
         tsl_load_relaxed(&part->sealing) == TSL_PART_SEALED;
}

bool tsl_warm_valid(const struct tsl_home *home) {
  for (uint32_t i = 0; i < home->own->warm_count; i++)
    if (!part_valid(home, tsl_part_at(home->own->warm[i].part))) return false;
  return true;
}
