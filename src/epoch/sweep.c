#include "epoch/sweep.h"

#include "epoch/spare.h"
#include "heap/cells.h"
#include "heap/drained.h"
#include "heap/extent.h"
#include "heap/hold.h"
#include "memory/kept.h"
#include "os/os.h"
#include "slab/slab.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "upkeep/remains.h"

// What is done with each piece.
struct sweep {
  uint32_t slot;
  bool (*has)(const struct sweep *sweep, uint32_t rank);  // looks at pieces of this rank (SP1)
  uint32_t rank;
  struct tsl_survivors *survivors;
  bool holds;
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

static bool has_unspared(const struct sweep *sweep TSL_UNUSED, uint32_t rank) { return rank == 0; }
static bool has_spared(const struct sweep *sweep, uint32_t rank) { return rank > sweep->rank; }

static void sweep_leave_cell(tsl_cell_number number) {
  if (tsl_cell_put_remote(number)) tsl_cells_drained(number);
}
static void sweep_leave_slab(struct tsl_slab *slab) {
  if (tsl_slab_count_down(slab) == TSL_REMOTE_EMPTY) tsl_heap_drained(slab);
}

static bool cell_is_of(const struct sweep *sweep, tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  return tsl_load_relaxed(&cell->epoch) == sweep->slot && tsl_load_relaxed(&cell->heap) == 0 &&
         sweep->has(sweep, tsl_cell_rank(number));
}
static bool slab_is_of(const struct sweep *sweep, const struct tsl_slab *slab) {
  return tsl_load_relaxed(&tsl_span_at(tsl_slab_unit(slab))->epoch) == sweep->slot &&
         tsl_load_relaxed(&slab->left) != 0 && sweep->has(sweep, tsl_slab_rank(slab));
}

// Where blocks were kept, frees of them may give a piece back at any moment: each is held, and
// looked at again, before anything is done with it.
static bool sweep_take_cell(const struct sweep *sweep, tsl_cell_number number) {
  if (!cell_is_of(sweep, number)) return false;
  if (!sweep->holds) return true;
  if (!tsl_cell_hold(number)) return false;
  if (cell_is_of(sweep, number)) return true;
  sweep_leave_cell(number);
  return false;
}

// A slab without blocks is passed over: it waits for its guard (drained.c), and goes back from
// there.
static bool slab_take(const struct sweep *sweep, struct tsl_slab *slab) {
  if (!slab_is_of(sweep, slab)) return false;
  if (!sweep->holds) return true;
  if (!tsl_slab_hold(slab)) return false;
  if (slab_is_of(sweep, slab)) return true;
  sweep_leave_slab(slab);
  return false;
}

static void unit_cells(struct sweep *sweep, tsl_unit unit) {
  for (uint32_t page = 0; page < TSL_UNIT_PAGES; page++) {
    tsl_cell_number number = unit * TSL_UNIT_PAGES + page;
    if (sweep_take_cell(sweep, number)) sweep->cell(sweep, number);
  }
}

static void unit_slab(struct sweep *sweep, size_t unit) {
  struct tsl_slab *slab = tsl_slab_at(unit);
  if (slab_take(sweep, slab)) sweep->slab(sweep, slab);
}

static void sweep_run(struct sweep *sweep) {
  struct tsl_extent extent = tsl_extent_of(sweep->slot);
  sweep->holds = tsl_epoch_keeps(sweep->slot);
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

static void sweep_end(struct sweep *sweep) {
  sweep_run(sweep);
  if (sweep->ended != 0) tsl_epoch_drain(sweep->slot, sweep->ended);
}

void tsl_sweep_give(uint32_t slot) {
  struct sweep sweep = {.slot = slot, .has = has_unspared, .cell = cell_give, .slab = slab_give};
  sweep_end(&sweep);
}

// Where the epoch waits, what holds nothing that is kept is left to poison.c.
static bool cell_waits(const struct sweep *sweep, tsl_cell_number number) {
  size_t bytes = tsl_sizeclasses[tsl_cells_class(number)].bytes;
  return tsl_epoch_waits(sweep->slot) && !tsl_kept_any(tsl_cell_address(number), bytes);
}

static void cell_spare(struct sweep *sweep, tsl_cell_number number) {
  if (cell_waits(sweep, number)) return sweep_leave_cell(number);
  sweep->ended += tsl_spare_cell(number, sweep->rank);
}

static void slab_spare(struct sweep *sweep, struct tsl_slab *slab) {
  if (tsl_epoch_waits(sweep->slot) && !tsl_slab_keeps(slab)) return sweep_leave_slab(slab);
  tsl_spare_slab(slab, sweep->rank);
}

void tsl_sweep_spare(uint32_t slot) {
  struct sweep sweep = {.slot = slot,
                        .has = has_unspared,
                        .rank = tsl_spare_rank(slot),
                        .cell = cell_spare,
                        .slab = slab_spare};
  sweep_end(&sweep);
}

// What was spared waits for nobody: it lies in no memory that is poisoned.
static void cell_spare_again(struct sweep *sweep, tsl_cell_number number) {
  sweep->ended += tsl_spare_cell(number, sweep->rank);
}
static void slab_spare_again(struct sweep *sweep, struct tsl_slab *slab) {
  tsl_spare_slab(slab, sweep->rank);
}

void tsl_sweep_spare_again(uint32_t slot, uint32_t rank) {
  struct sweep sweep = {.slot = slot,
                        .has = has_spared,
                        .rank = rank,
                        .cell = cell_spare_again,
                        .slab = slab_spare_again};
  sweep_end(&sweep);
}

static void cell_count(struct sweep *sweep, tsl_cell_number number) {
  uint32_t counts[TSL_CLASSES] = {0};
  tsl_cell_live(number, counts);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    sweep->survivors->objects += counts[class];
    sweep->survivors->bytes += (size_t)counts[class] * tsl_sizeclasses[class].bytes;
  }
  size_t bytes = tsl_sizeclasses[tsl_cells_class(number)].bytes;
  sweep->survivors->pages += bytes >> TSL_CELL_PAGE_LOG2;
  sweep_leave_cell(number);
}

static void slab_count(struct sweep *sweep, struct tsl_slab *slab) {
  uint32_t live = tsl_slab_live(slab);
  sweep->survivors->objects += live;
  sweep->survivors->bytes += (size_t)live * tsl_sizeclasses[slab->class].bytes;
  sweep->survivors->pages += tsl_sizeclasses[slab->class].slab_bytes >> TSL_CELL_PAGE_LOG2;
  sweep_leave_slab(slab);
}

void tsl_sweep_count_spared(uint32_t slot, struct tsl_survivors *survivors) {
  struct sweep sweep = {.slot = slot,
                        .has = has_spared,
                        .survivors = survivors,
                        .cell = cell_count,
                        .slab = slab_count};
  sweep_run(&sweep);
}

// Pages that are larger than a cell stay accessible.
static void protect(struct sweep *sweep, uintptr_t start, size_t bytes) {
  if (bytes < tsl_os_page_bytes()) return;
  if (!tsl_os_protect((void *)start, bytes, sweep->is_protected)) sweep->is_refused = true;
}

// What waits stays held, so that no free gives it back.
static void cell_protect(struct sweep *sweep, tsl_cell_number number) {
  if (sweep->is_protected) tsl_cells_end_samples(number, 1);
  protect(sweep, tsl_cell_address(number), tsl_sizeclasses[tsl_cells_class(number)].bytes);
  if (sweep->holds && !sweep->is_protected) sweep_leave_cell(number);
}

static void slab_protect(struct sweep *sweep, struct tsl_slab *slab) {
  size_t bytes = tsl_sizeclasses[slab->class].slab_bytes;
  protect(sweep, tsl_unit_address(tsl_slab_unit(slab)), bytes);
  if (sweep->holds && !sweep->is_protected) sweep_leave_slab(slab);
}

bool tsl_sweep_protect(uint32_t slot, bool is_protected) {
  struct sweep sweep = {.slot = slot,
                        .has = has_unspared,
                        .cell = cell_protect,
                        .slab = slab_protect,
                        .is_protected = is_protected};
  sweep_run(&sweep);
  return !sweep.is_refused;
}
