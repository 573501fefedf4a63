#include "epoch/spare.h"

#include "heap/cells.h"
#include "heap/drained.h"
#include "heap/slabs.h"
#include "memory/kept.h"
#include "state/epoch.h"
#include "tell/epochs.h"

uint32_t tsl_spare_rank(uint32_t slot) { return tsl_epoch_at(slot)->level + 1u; }

static bool cell_has_kept(tsl_cell_number number) {
  return tsl_kept_any(tsl_cell_address(number), tsl_sizeclasses[tsl_cells_class(number)].bytes);
}

// Ends what is not kept, in a cell that is not sealed.
static void cell_end_rest(tsl_cell_number number, uint32_t rank) {
  uint32_t ignored[TSL_CLASSES] = {0};
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t ended = tsl_cell_spare(number, cell->granules, rank, ignored);
  tsl_cells_end_samples(number, TSL_CELL_FREED);
  tsl_store_relaxed(&cell->freed, cell->freed + ended);
}

static void cell_leave(struct tsl_heap *heap, tsl_cell_number number, struct tsl_spared *spared) {
  tsl_cells_unlist(heap, number);
  cell_end_rest(number, tsl_spare_rank(heap->epoch));
  tsl_add_relaxed(&tsl_epoch_at(heap->epoch)->undrained, 1);
  spared->pieces++;
  tsl_cells_collect(number);
  if (tsl_cell_seal(number) != 0) return;
  tsl_cells_give(number);
  spared->given++;
}

// A free of a kept block that has taken its bit off may not count yet: the cell is then not empty
// although nothing in it is kept (SP2).
static void cell_end_or_leave(struct tsl_heap *heap, tsl_cell_number number, bool waits,
                              struct tsl_spared *spared) {
  if (cell_has_kept(number)) return cell_leave(heap, number, spared);
  if (waits) return;
  cell_end_rest(number, 0);
  if (tsl_cell_out(number) != 0) cell_leave(heap, number, spared);
}

// The slab is held meanwhile.
static void slab_leave(struct tsl_heap *heap, struct tsl_slab *slab, struct tsl_spared *spared) {
  uint32_t counts[TSL_CLASSES] = {0};
  unsigned class = slab->class;
  tsl_slabs_unlist(heap, (tsl_unit)tsl_slab_unit(slab));
  tsl_add_relaxed(&tsl_epoch_at(heap->epoch)->undrained, 1);
  uint32_t out = tsl_heap_seal_slab(slab, 1).out;
  uint32_t ended = tsl_slab_spare(slab, tsl_spare_rank(heap->epoch));
  counts[class] = out - ended;
  tsl_report_survivors(heap->epoch, counts);
  spared->pieces++;
  spared->slab_pages += tsl_sizeclasses[class].slab_bytes >> TSL_CELL_PAGE_LOG2;
  bool is_empty = tsl_slab_count_down_by(slab, ended + 1) == TSL_REMOTE_EMPTY;
  if (is_empty && tsl_drained_give(slab)) spared->given++;
}

struct tsl_spared tsl_spare_part(struct tsl_heap *heap, bool waits) {
  struct tsl_spared spared = {0, 0, 0};
  for (tsl_cell_number number = heap->cells, older; number != 0; number = older) {
    older = tsl_cell_at(number)->older;
    cell_end_or_leave(heap, number, waits, &spared);
  }
  for (tsl_unit unit = heap->slabs, next; unit != 0; unit = next) {
    struct tsl_slab *slab = tsl_slab_at(unit);
    next = tsl_span_at(unit)->next;
    if (tsl_slabs_have_kept(slab)) slab_leave(heap, slab, &spared);
  }
  return spared;
}

bool tsl_spare_cell(tsl_cell_number number, uint32_t rank) {
  uint32_t counts[TSL_CLASSES] = {0};
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t ended = tsl_cell_spare(number, cell->granules, rank, counts);
  tsl_cells_end_samples(number, TSL_CELL_FREED);
  tsl_report_survivors_ended(cell->epoch, counts);
  if (!tsl_cell_put_several(number, ended + 1)) return false;
  tsl_cells_give(number);
  return true;
}

void tsl_spare_slab(struct tsl_slab *slab, uint32_t rank) {
  uint32_t counts[TSL_CLASSES] = {0};
  uint32_t ended = tsl_slab_spare(slab, rank);
  counts[slab->class] = ended;
  tsl_report_survivors_ended(tsl_load_relaxed(&tsl_span_at(tsl_slab_unit(slab))->epoch), counts);
  if (tsl_slab_count_down_by(slab, ended + 1) == TSL_REMOTE_EMPTY) tsl_heap_drained(slab);
}
