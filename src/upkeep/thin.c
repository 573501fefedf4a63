#include "upkeep/thin.h"

#include "heap/cells.h"

enum {
  TURN_CALLS = 8,   // system calls, and scans, of one turn
  TURN_LOOKS = 64,  // cells of one turn
  LEAST_GRANULES = 1 << (TSL_CELL_PAGE_LOG2 - TSL_GRANULE_LOG2)  // a page
};

// How far a cell was when the helper looked at it last. 0: nothing was dead. Of an older one: one
// more than the blocks that were out when its dead pages went back. Of the newest: the granules
// that it had then. THIN_DUE is added where pages are to go back at the next round.
enum { THIN_DUE = 0x8000 };

static unsigned calls_left, looks_left;  // [helper] of this turn
static uint32_t cells_passed;            // [helper] cells of the part that this round has passed
static bool part_waits;                  // [helper] one of them is due at the next round

static bool has_thinned(const struct tsl_cell *cell, uint32_t out) {
  uint32_t last = cell->thinned & (THIN_DUE - 1u);
  if (last == 0) return 2 * out <= tsl_load_relaxed(&cell->blocks);
  return last > 1 && 2 * out <= last - 1;
}

static void thin_expect(struct tsl_cell *cell, uint32_t thinned) {
  cell->thinned = (uint16_t)(thinned | THIN_DUE);
  part_waits = true;
}

static void count_calls(unsigned calls) { calls_left -= calls_left < calls ? calls_left : calls; }

static void older_tend(tsl_cell_number number, struct tsl_cell *cell) {
  uint32_t out = tsl_cell_out(number);
  if (!has_thinned(cell, out)) return;
  if ((cell->thinned & THIN_DUE) == 0) return thin_expect(cell, cell->thinned);
  cell->thinned = (uint16_t)(out + 1);
  count_calls(1 + tsl_cell_purge(number, tsl_sizeclasses[tsl_cells_class(number)].bytes));
}

// What the owner has cut off its newest cell, but for what it may cut again. It marks each block
// before it moves `cell_next`.
static uint32_t settled_granules(const struct tsl_heap *part) {
  uintptr_t bytes = tsl_load_relaxed(&part->cell_next) - part->cell_start;
  if (bytes < TSL_CELL_MOST_BACK) return 0;
  return (uint32_t)((bytes - TSL_CELL_MOST_BACK) >> TSL_GRANULE_LOG2);
}

// The owner goes on to allocate behind what it had marked at the last round, and has passed the
// barrier of this one since: all of these marks are seen.
static void newest_tend(const struct tsl_heap *part, tsl_cell_number number,
                        struct tsl_cell *cell) {
  uint32_t seen = cell->thinned & (THIN_DUE - 1u);
  if ((cell->thinned & THIN_DUE) != 0) {
    cell->thinned = (uint16_t)seen;
    bool is_dead = tsl_cell_start_is_dead(number, seen);
    return count_calls(is_dead ? 1 + tsl_cell_purge_start(number, seen) : 1);
  }
  uint32_t granules = settled_granules(part);
  if (granules < seen + LEAST_GRANULES) return;
  count_calls(1);
  if (tsl_cell_start_is_dead(number, granules)) thin_expect(cell, granules);
}

// Cells of 4 KiB have no dead page while a block lives.
static void cell_tend(const struct tsl_heap *part, tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  if (tsl_cells_class(number) == TSL_CELL_4K) return;
  bool is_newest = tsl_cell_address(number) == part->cell_start;
  is_newest ? newest_tend(part, number, cell) : older_tend(number, cell);
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
  for (; number != 0 && calls_left != 0 && looks_left != 0; looks_left--, cells_passed++) {
    cell_tend(part, number);
    number = tsl_cell_at(number)->older;
  }
  if (number != 0) return TSL_ROUND_GOES_ON;
  return tsl_thin_end();
}

enum tsl_sparse_round tsl_thin_end(void) {
  bool waits = part_waits;
  cells_passed = 0;
  part_waits = false;
  return waits ? TSL_ROUND_WAITS : TSL_ROUND_RESTS;
}

void tsl_thin_begin_turn(void) {
  calls_left = TURN_CALLS;
  looks_left = TURN_LOOKS;
}
