#include "epoch/sweep.h"

#include "heap/cells.h"
#include "heap/drained.h"
#include "heap/extent.h"
#include "heap/hold.h"
#include "os/os.h"
#include "slab/slab.h"
#include "state/heap.h"
#include "upkeep/remains.h"

// What is done with each piece.
struct sweep {
  uint32_t slot;
  void (*cell)(struct sweep *sweep, tsl_cell_number number);
  void (*slab)(struct sweep *sweep, struct tsl_slab *slab);
  bool is_protected;
  bool is_refused;
  uint32_t ended;  // cells that went back
};

static void cell_give(struct sweep *sweep, tsl_cell_number number) {
  tsl_cells_give(number);
  sweep->ended++;
}

static void slab_give(struct sweep *sweep TSL_UNUSED, struct tsl_slab *slab) {
  tsl_slab_wipe(slab);
  tsl_heap_drained(slab);
}

// Pages that are larger than a cell stay accessible.
static void protect(struct sweep *sweep, uintptr_t start, size_t bytes) {
  if (bytes < tsl_os_page_bytes()) return;
  if (!tsl_os_protect((void *)start, bytes, sweep->is_protected)) sweep->is_refused = true;
}

static void cell_protect(struct sweep *sweep, tsl_cell_number number) {
  protect(sweep, tsl_cell_address(number), tsl_sizeclasses[tsl_cells_class(number)].bytes);
}

static void slab_protect(struct sweep *sweep, struct tsl_slab *slab) {
  size_t bytes = tsl_sizeclasses[slab->class].slab_bytes;
  protect(sweep, tsl_unit_address(tsl_slab_unit(slab)), bytes);
}

static void unit_cells(struct sweep *sweep, tsl_unit unit) {
  for (uint32_t page = 0; page < TSL_UNIT_PAGES; page++) {
    const struct tsl_cell *cell = &tsl_cells_at(unit)->cells[page];
    if (tsl_load_relaxed(&cell->epoch) != sweep->slot || tsl_load_relaxed(&cell->heap) != 0)
      continue;
    sweep->cell(sweep, unit * TSL_UNIT_PAGES + page);
  }
}

// A slab without blocks is passed over: it waits for its guard (drained.c), and goes back from
// there.
static void unit_slab(struct sweep *sweep, size_t unit) {
  struct tsl_slab *slab = tsl_slab_at(unit);
  if (tsl_load_relaxed(&tsl_span_at(unit)->epoch) != sweep->slot) return;
  if (tsl_load_relaxed(&slab->left) != 0) sweep->slab(sweep, slab);
}

static void sweep_run(struct sweep *sweep) {
  struct tsl_extent extent = tsl_extent_of(sweep->slot);
  for (size_t unit = extent.first; unit < extent.end;) {
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
    unsigned code = tsl_entry_code(entry);
    bool is_slab = tsl_entry_owner(entry) == TSL_HEAP_SEALED;
    bool is_cells = entry != 0 && tsl_code_is_cell(code);
    size_t units = is_slab ? tsl_sizeclasses[tsl_code_class(code)].units : 1;
    size_t behind = unit & (units - 1);  // not 0: a slab that was sealed after the walk passed it
    if (is_slab || is_cells) tsl_remains_lock();
    if (is_slab && behind == 0) unit_slab(sweep, unit);
    if (is_cells) unit_cells(sweep, (tsl_unit)unit);
    if (is_slab || is_cells) tsl_remains_unlock();
    unit += units - behind;
  }
}

void tsl_sweep_give(uint32_t slot) {
  struct sweep sweep = {.slot = slot, .cell = cell_give, .slab = slab_give};
  sweep_run(&sweep);
  if (sweep.ended != 0) tsl_epoch_drain(slot, sweep.ended);
}

bool tsl_sweep_protect(uint32_t slot, bool is_protected) {
  struct sweep sweep = {
      .slot = slot, .cell = cell_protect, .slab = slab_protect, .is_protected = is_protected};
  sweep_run(&sweep);
  return !sweep.is_refused;
}
