#include "upkeep/thin.h"

#include "heap/cells.h"
#include "slab/cell.h"

enum {
  THIN_CALLS = 8,
  THIN_LOOKS = 64,
  LEAST_GRANULES = 1 << (TSL_CELL_PAGE_LOG2 - TSL_GRANULE_LOG2)  // a page more
};

// How far a cell was when the helper looked at it last. 0: nothing was dead. Of an older one: one
// more than the blocks that were out when its dead pages went back. Of the newest: the granules
// that it had then. THIN_DUE is added where pages are to go back at the next round.
enum { THIN_DUE = 0x8000 };

static uint32_t cells_passed;  // [helper] cells of the part that this round has passed
static bool part_waits;        // [helper] one of them is due at the next round

static bool has_thinned(const struct tsl_cell *cell, uint32_t out) {
  uint32_t last = cell->thinned & (THIN_DUE - 1u);
  if (last == 0) return 2 * out <= tsl_load_relaxed(&cell->blocks);
  return last > 1 && 2 * out <= last - 1;
}

static void thin_expect(struct tsl_cell *cell, uint32_t thinned) {
  cell->thinned = (uint16_t)(thinned | THIN_DUE);
  part_waits = true;
}

// Returns the number of system calls.
static unsigned older_tend(tsl_cell_number number, struct tsl_cell *cell) {
  uint32_t out = tsl_cell_out(number);
  if (!has_thinned(cell, out)) return 0;
  if ((cell->thinned & THIN_DUE) == 0) return thin_expect(cell, cell->thinned), 0;
  cell->thinned = (uint16_t)(out + 1);
  return tsl_cell_purge(number, tsl_sizeclasses[tsl_cells_class(number)].bytes);
}

// The owner goes on to allocate behind the granules that were there at the last round. It marks a
// block before its granules are there, and has passed the barrier of this round since.
static unsigned newest_tend(const struct tsl_heap *part, tsl_cell_number number,
                            struct tsl_cell *cell) {
  uint32_t seen = cell->thinned & (THIN_DUE - 1u);
  if ((cell->thinned & THIN_DUE) != 0) {
    cell->thinned = (uint16_t)seen;
    return tsl_cell_start_is_dead(number, seen) ? tsl_cell_purge_start(number, seen) : 0;
  }
  uintptr_t bytes = tsl_load_relaxed(&part->cell_next) - part->cell_start;  // pairs: cell-next
  uint32_t granules = (uint32_t)(bytes >> TSL_GRANULE_LOG2);
  bool has_grown = granules >= seen + LEAST_GRANULES;
  if (has_grown && tsl_cell_start_is_dead(number, granules)) thin_expect(cell, granules);
  return 0;
}

// Cells of 4 KiB have no dead page while a block lives.
static unsigned cell_tend(const struct tsl_heap *part, tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  if (tsl_cells_class(number) == TSL_CELL_4K) return 0;
  bool is_newest = tsl_cell_address(number) == part->cell_start;
  return is_newest ? newest_tend(part, number, cell) : older_tend(number, cell);
}

// Between two calls cells may have come and gone: some are then passed over until the next round,
// or looked at twice.
static tsl_cell_number cell_behind(const struct tsl_heap *part, uint32_t count) {
  tsl_cell_number number = part->cells;
  for (; count != 0 && number != 0; count--) number = tsl_cell_at(number)->older;
  return number;
}

enum tsl_sparse_round tsl_thin_tend(struct tsl_heap *part) {
  tsl_cell_number number = cell_behind(part, cells_passed);
  unsigned calls = 0, looks = 0;
  for (; number != 0 && calls < THIN_CALLS && looks < THIN_LOOKS; looks++) {
    calls += cell_tend(part, number);
    number = tsl_cell_at(number)->older;
  }
  cells_passed += looks;
  if (number != 0) return TSL_ROUND_GOES_ON;
  bool waits = part_waits;
  tsl_thin_forget();
  return waits ? TSL_ROUND_WAITS : TSL_ROUND_RESTS;
}

void tsl_thin_forget(void) {
  cells_passed = 0;
  part_waits = false;
}
