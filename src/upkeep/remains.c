#include "upkeep/remains.h"

#include "base/lock.h"
#include "heap/cells.h"
#include "heap/drained.h"
#include "memory/limit.h"
#include "memory/purge.h"
#include "state/epoch.h"
#include "tell/process.h"

// What one step does for each millisecond since the last, of which no more than REMAINS_MOST_MS
// count, as many times as its pace says; and for each unit that was taken since then, of which no
// more than MOST_UNITS count.
enum { REMAINS_LOOKS = 32, CALLS = 8, REMAINS_MOST_MS = 4, UNIT_CALLS = 4, MOST_UNITS = 32 };

#define NEVER UINT64_MAX

static struct tsl_lock holds_lock = {.rank = TSL_RANK_HOLDS};
static tsl_cell_number held_cell
    TSL_GUARDED_BY(holds_lock);  // [lock:holds] gives pages back; 0: none
static struct tsl_slab *held_slab TSL_GUARDED_BY(holds_lock);  // [lock:holds] the same; NULL: none
static tsl_cell_number lost_cell;                              // held by a thread that a fork took
static struct tsl_slab *lost_slab;                             // the same
static bool are_any;          // [remote] a seal left live blocks: until then no unit is looked at
static uint32_t units_taken;  // [remote] since the last step
static uint64_t remains_due_ms;        // [remote] the thread that moves it on does the step
static tsl_unit unit_to_look_at;       // [due] written by who does the step
static uint64_t met_due_ms = NEVER;    // [remote] the earliest due time of what this round, or a
                                       // seal during it, found too young
static uint64_t first_due_ms = NEVER;  // [remote] the same of the last round and of seals since
static size_t
    dead_bytes;  // [remote] about, in what was sealed and no round has met since it was due
static struct {
  size_t bytes;     // [remote] of these,
  uint64_t due_ms;  // [due] all of them due from then on;
  bool is_met;      // [due] a round began since then
} marked;

void tsl_remains_lock(void) TSL_ACQUIRES(holds_lock) { tsl_lock_acquire(&holds_lock); }
void tsl_remains_unlock(void) TSL_RELEASES(holds_lock) {
  tsl_assert(held_cell == 0 && held_slab == NULL);
  tsl_lock_release(&holds_lock);
}

static void lower(uint64_t *least,  // NOLINT(readability-non-const-parameter)
                  uint64_t value) {
  uint64_t before = tsl_load_relaxed(least);
  while (value < before && !tsl_cas_acq_rel(least, &before, value)) continue;  // pairs: remains
}

// Lowers `met_due_ms` first. A new round empties `first_due_ms` and then folds `met_due_ms` into
// it: in the other order a round that begins in between would leave this time out of
// `first_due_ms`.
static void expect(uint64_t due_ms) {
  lower(&met_due_ms, due_ms);
  lower(&first_due_ms, due_ms);
}

static void dead_add(size_t bytes) {
  tsl_add_relaxed(&dead_bytes, bytes);
  tsl_purge_loosen(0, bytes);
}

// What is marked was sealed so long before `due_ms` that a round that begins later meets all of it:
// it went back, or cannot. Two threads may be here at once; one takes the mark.
static void dead_look(uint64_t now_ms) {
  if (now_ms < tsl_load_relaxed(&marked.due_ms)) return;
  bool is_met = tsl_load_relaxed(&marked.is_met);
  tsl_store_relaxed(&marked.is_met, !is_met);
  if (!is_met) return;
  size_t bytes = tsl_exchange_relaxed(&marked.bytes, 0);
  size_t rest = tsl_sub_relaxed(&dead_bytes, bytes) - bytes;
  tsl_purge_loosen(bytes, 0);
  tsl_store_relaxed(&marked.bytes, rest);
  tsl_store_relaxed(&marked.due_ms, now_ms + tsl_limit_delay_ms());
}

static void remains_begin(void) {
  tsl_store_relaxed(&first_due_ms, NEVER);
  lower(&first_due_ms, tsl_exchange_acq_rel(&met_due_ms, NEVER));  // pairs: remains
  dead_look(tsl_os_now_ms());
}

// `closed_ms` is stored after the epoch's state: while it is still 0, the epoch has ended just now.
// One that is open was reset (spare.h).
static uint64_t due_ms_of(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  bool is_open = tsl_epoch_state(tsl_load_relaxed(&epoch->word)) == TSL_EPOCH_OPEN;
  uint64_t closed_ms = tsl_load_relaxed(is_open ? &epoch->opened_ms : &epoch->closed_ms);
  if (closed_ms == 0) closed_ms = tsl_os_now_ms();
  return closed_ms + tsl_limit_delay_ms();
}

void tsl_remains_expect(uint32_t epoch, size_t more_bytes) {
  expect(due_ms_of(epoch));
  dead_add(more_bytes);
  if (!tsl_load_relaxed(&are_any)) tsl_store_relaxed(&are_any, true);
}

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

// Returns the number of system calls. The class is read again: before the hold the number may have
// been another cell's.
static unsigned cell_give_pages(tsl_cell_number number) {
  unsigned class = tsl_cells_class(number);
  if (class == TSL_CELL_4K) return 0;
  tsl_store_relaxed(&tsl_cell_at(number)->blocks, tsl_cell_sealed_out(number) - 1);
  return tsl_cell_purge(number, tsl_sizeclasses[class].bytes);
}

// Clears `*held` first. When a fork takes the thread between the two steps, the hold is never ended
// in the child; in the other order it would be ended twice.
// O1: counts down like any free.
static void cell_let_go(tsl_cell_number *held) {
  tsl_cell_number number = *held;
  *held = 0;
  tsl_compiler_fence();  // pairs: held
  if (tsl_cell_put_remote(number)) tsl_cells_drained(number);
}

static void slab_let_go(struct tsl_slab **held) {
  struct tsl_slab *slab = *held;
  *held = NULL;
  tsl_compiler_fence();  // pairs: held
  if (tsl_slab_count_down(slab) == TSL_REMOTE_EMPTY) tsl_heap_drained(slab);
}

// What is due stays so; the child forgets how much it is, with all that counts as idle.
void tsl_remains_after_fork(void) TSL_NOT_ANALYSED {
  tsl_store_relaxed(&dead_bytes, 0);
  tsl_store_relaxed(&marked.bytes, 0);
  if (!tsl_lock_take_over(&holds_lock)) return;
  lost_cell = held_cell;  // pairs: held
  lost_slab = held_slab;
  held_cell = 0;
  held_slab = NULL;
}

void tsl_remains_let_go(void) {
  if (lost_cell != 0) cell_let_go(&lost_cell);
  if (lost_slab != NULL) slab_let_go(&lost_slab);
}

static unsigned cell_look(tsl_cell_number number, uint64_t now_ms) TSL_REQUIRES(holds_lock) {
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
  if (!tsl_slab_has_thinned(slab, left, tsl_sizeclasses[slab->class].capacity)) return 0;
  struct tsl_purged purged = tsl_slab_purge(slab, left);
  tsl_report_purged(slab->class, purged.bytes);
  return purged.calls;
}

static unsigned slab_look(tsl_unit unit, uint64_t now_ms) TSL_REQUIRES(holds_lock) {
  struct tsl_slab *slab = tsl_slab_at(unit);
  if (tsl_load_relaxed(&slab->left) <= 0) return 0;
  uint32_t epoch = tsl_load_relaxed(&tsl_span_at(unit)->epoch);
  if (is_young(epoch, now_ms) || !tsl_slab_hold(slab)) return 0;
  held_slab = slab;
  unsigned calls = slab_give_pages(slab);
  slab_let_go(&held_slab);
  return calls;
}

static unsigned cells_look(tsl_unit unit, unsigned class, uint64_t now_ms)
    TSL_REQUIRES(holds_lock) {
  unsigned calls = 0;
  uint32_t pages = tsl_sizeclasses[class].bytes >> TSL_CELL_PAGE_LOG2;
  for (uint32_t page = 0; page < TSL_UNIT_PAGES; page += pages)
    calls += cell_look(unit * TSL_UNIT_PAGES + page, now_ms);
  return calls;
}

// Cells of 4 KiB are passed over: while one is in use it has no dead page.
static unsigned unit_look(tsl_unit unit, uint64_t now_ms) {
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
  unsigned code = tsl_entry_code(entry), calls = 0;
  bool is_slab = tsl_entry_owner(entry) == TSL_HEAP_SEALED;
  bool is_cells = entry != 0 && tsl_code_is_cell(code) && tsl_code_class(code) != TSL_CELL_4K;
  if (!is_slab && !is_cells) return 0;
  tsl_remains_lock();  // O2
  calls = is_slab ? slab_look(unit, now_ms) : cells_look(unit, tsl_code_class(code), now_ms);
  tsl_remains_unlock();
  return calls;
}

// Moves on to the next unit and returns it; 0 between two rounds.
static tsl_unit remains_next(void) {
  tsl_unit unit = tsl_load_relaxed(&unit_to_look_at);
  bool at_end = unit >= tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  bool is_between = unit == 0 || at_end;
  tsl_store_relaxed(&unit_to_look_at, is_between ? (tsl_unit)tsl_region.first_unit : unit + 1);
  if (is_between) remains_begin();
  return is_between ? 0 : unit;
}

// Milliseconds that this step may make up for; 0 when none has passed, or another thread does the
// step.
static unsigned remains_claim(uint64_t now_ms) {
  uint64_t due_ms = tsl_load_relaxed(&remains_due_ms);
  if (now_ms < due_ms || !tsl_cas_relaxed(&remains_due_ms, &due_ms, now_ms + 1)) return 0;
  uint64_t passed_ms = now_ms + 1 - due_ms;
  return passed_ms < REMAINS_MOST_MS ? (unsigned)passed_ms : REMAINS_MOST_MS;
}

// Looks that this step may take; 0: it is not due. A process that takes memory gives more back.
static unsigned step_budget(uint64_t now_ms, unsigned pace, unsigned *calls) {
  unsigned due = remains_claim(now_ms) * pace;
  if (due == 0) return 0;
  uint32_t units = tsl_exchange_relaxed(&units_taken, 0);
  if (units > MOST_UNITS) units = MOST_UNITS;
  *calls = due * CALLS + units * UNIT_CALLS;
  return (due + units) * REMAINS_LOOKS;
}

void tsl_remains_step(unsigned pace) {
  if (!tsl_load_relaxed(&are_any)) return;
  uint64_t now_ms = tsl_os_now_ms();
  unsigned most_calls = 0, calls = 0;
  for (unsigned looks = step_budget(now_ms, pace, &most_calls); looks != 0 && calls < most_calls;
       looks--) {
    tsl_unit unit = remains_next();
    if (unit != 0) calls += unit_look(unit, now_ms);
  }
}

void tsl_remains_take(uint32_t units) {
  if (units != 0) tsl_add_relaxed(&units_taken, units);
}
