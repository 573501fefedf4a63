#include "epoch/remains.h"

#include "base/lock.h"
#include "base/options.h"
#include "epoch/epoch.h"
#include "epoch/heap.h"
#include "epoch/mixed.h"
#include "epoch/seal.h"
#include "memory/record.h"
#include "os/os.h"

// What one step does for each millisecond since the last, of which no more than MOST_MS count.
enum { LOOKS = 32, CALLS = 8, MOST_MS = 4 };

#define NEVER UINT64_MAX

static struct tsl_lock lock;           // holds
static tsl_cell_number held_cell;      // [lock:holds] gives pages back; 0: none
static struct tsl_slab *held_slab;     // [lock:holds] the same; NULL: none
static tsl_cell_number lost_cell;      // held by a thread that a fork took
static struct tsl_slab *lost_slab;     // the same
static uint64_t step_due_ms;           // [remote] whoever moves it on does the step
static tsl_unit next_unit;             // [due] to look at; written by who does the step
static uint64_t met_due_ms = NEVER;    // [remote] when the first is due that this round, or a seal
                                       // meanwhile, found too young
static uint64_t first_due_ms = NEVER;  // [remote] the same of the last round, and seals since

void tsl_remains_lock(void) { tsl_lock_acquire(&lock); }
void tsl_remains_unlock(void) { tsl_lock_release(&lock); }

static void lower(uint64_t *least,  // NOLINT(readability-non-const-parameter)
                  uint64_t value) {
  uint64_t before = tsl_load_relaxed(least);
  while (value < before && !tsl_cas_acq_rel(least, &before, value)) continue;  // pairs: remains
}

// In this order: what begins a round empties the second, and then hands the first on to it.
static void expect(uint64_t due_ms) {
  lower(&met_due_ms, due_ms);
  lower(&first_due_ms, due_ms);
}

static void round_begin(void) {
  tsl_store_relaxed(&first_due_ms, NEVER);
  lower(&first_due_ms, tsl_exchange_acq_rel(&met_due_ms, NEVER));  // pairs: remains
}

// Who ends an epoch notes the time after others may have seen the end.
static uint64_t due_ms_of(uint32_t epoch) {
  uint64_t closed_ms = tsl_load_relaxed(&tsl_epoch_at(epoch)->closed_ms);
  return (closed_ms == 0 ? tsl_os_now_ms() : closed_ms) + (uint64_t)tsl_option(purge_delay_ms);
}

void tsl_remains_expect(uint32_t epoch) { expect(due_ms_of(epoch)); }

bool tsl_remains_wait(void) {
  uint64_t due_ms = tsl_load_relaxed(&first_due_ms);
  return due_ms != NEVER && tsl_os_now_ms() >= due_ms;
}

static bool is_young(uint32_t epoch, uint64_t now_ms) {
  uint64_t due_ms = due_ms_of(epoch);
  if (now_ms >= due_ms) return false;
  expect(due_ms);
  return true;
}

// Calls that the system got. What was looked at before the hold may have been another cell.
static unsigned cell_give_pages(tsl_cell_number number) {
  unsigned class = tsl_mixed_cell_class(number);
  if (class == TSL_CELL_4K) return 0;
  tsl_store_relaxed(&tsl_cell_at(number)->blocks, tsl_cell_sealed_out(number) - 1);
  return tsl_cell_purge(number, tsl_sizeclasses[class].bytes);
}

// `*held` goes first: of a thread that a fork takes between the two a hold is left that nobody
// ends; the other way round it would be ended twice.
static void cell_let_go(tsl_cell_number *held) {
  tsl_cell_number number = *held;
  *held = 0;
  tsl_compiler_fence();  // pairs: held
  if (tsl_cell_put_remote(number)) tsl_mixed_drained(number);
}

static void slab_let_go(struct tsl_slab **held) {
  struct tsl_slab *slab = *held;
  *held = NULL;
  tsl_compiler_fence();  // pairs: held
  if (tsl_slab_count_down(slab) == TSL_REMOTE_EMPTY) tsl_heap_drained(slab);
}

void tsl_remains_after_fork(void) {
  if (!tsl_lock_take_over(&lock)) return;
  lost_cell = held_cell;  // pairs: held
  lost_slab = held_slab;
  held_cell = 0;
  held_slab = NULL;
}

void tsl_remains_let_go(void) {
  if (lost_cell != 0) cell_let_go(&lost_cell);
  if (lost_slab != NULL) slab_let_go(&lost_slab);
}

static unsigned cell_look(tsl_cell_number number, uint64_t now_ms) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t out = tsl_cell_sealed_out(number);
  if (out == 0 || 2 * out > tsl_load_relaxed(&cell->blocks)) return 0;
  if (is_young(tsl_load_relaxed(&cell->epoch), now_ms) || !tsl_cell_hold(number)) return 0;
  held_cell = number;
  unsigned calls = cell_give_pages(number);
  cell_let_go(&held_cell);
  return calls;
}

static unsigned slab_give_pages(struct tsl_slab *slab) {
  uint32_t left = (uint32_t)tsl_load_relaxed(&slab->left) - 1;
  uint32_t before = slab->purged ? slab->out : tsl_sizeclasses[slab->class].capacity;
  if (2 * left > before) return 0;
  slab->out = left;
  return tsl_slab_purge(slab);
}

static unsigned slab_look(tsl_unit unit, uint64_t now_ms) {
  struct tsl_slab *slab = tsl_slab_at(unit);
  if (tsl_load_relaxed(&slab->left) <= 0) return 0;
  uint32_t epoch = tsl_load_relaxed(&tsl_span_at(unit)->epoch);
  if (is_young(epoch, now_ms) || !tsl_slab_hold(slab)) return 0;
  held_slab = slab;
  unsigned calls = slab_give_pages(slab);
  slab_let_go(&held_slab);
  return calls;
}

static unsigned cells_look(tsl_unit unit, unsigned class, uint64_t now_ms) {
  unsigned calls = 0;
  uint32_t pages = tsl_sizeclasses[class].bytes >> TSL_CELL_PAGE_LOG2;
  for (uint32_t page = 0; page < TSL_UNIT_PAGES; page += pages)
    calls += cell_look(unit * TSL_UNIT_PAGES + page, now_ms);
  return calls;
}

// A cell of a page has no dead pages.
static unsigned unit_look(tsl_unit unit, uint64_t now_ms) {
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
  unsigned code = tsl_entry_code(entry), calls = 0;
  bool is_slab = entry >> TSL_CODE_BITS == TSL_HEAP_SEALED;
  bool is_cells = entry != 0 && tsl_code_is_cell(code) && code / 2 != TSL_CELL_4K;
  if (!is_slab && !is_cells) return 0;
  tsl_remains_lock();
  calls = is_slab ? slab_look(unit, now_ms) : cells_look(unit, code / 2, now_ms);
  tsl_remains_unlock();
  return calls;
}

// The unit to look at. 0 between two rounds.
static tsl_unit step_next(void) {
  tsl_unit unit = tsl_load_relaxed(&next_unit);
  bool at_end = unit >= tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  bool is_between = unit == 0 || at_end;
  tsl_store_relaxed(&next_unit, is_between ? (tsl_unit)tsl_region.first_unit : unit + 1);
  if (is_between) round_begin();
  return is_between ? 0 : unit;
}

// Milliseconds that this step may make up for; 0 when none has passed, or somebody else does it.
static unsigned step_claim(uint64_t now_ms) {
  uint64_t due_ms = tsl_load_relaxed(&step_due_ms);
  if (now_ms < due_ms || !tsl_cas_relaxed(&step_due_ms, &due_ms, now_ms + 1)) return 0;
  uint64_t passed_ms = now_ms + 1 - due_ms;
  return passed_ms < MOST_MS ? (unsigned)passed_ms : MOST_MS;
}

void tsl_remains_step(void) {
  uint64_t now_ms = tsl_os_now_ms();
  unsigned passed_ms = step_claim(now_ms), most_calls = passed_ms * CALLS, calls = 0;
  for (unsigned looks = passed_ms * LOOKS; looks != 0 && calls < most_calls; looks--) {
    tsl_unit unit = step_next();
    if (unit != 0) calls += unit_look(unit, now_ms);
  }
}
