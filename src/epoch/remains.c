#include "epoch/remains.h"

#include <stdint.h>

#include "base/lock.h"
#include "base/options.h"
#include "epoch/epoch.h"
#include "epoch/heap.h"
#include "epoch/mixed.h"
#include "epoch/seal.h"
#include "memory/record.h"
#include "os/os.h"

// What one step does for each millisecond since the last, of which no more than MOST_MS count.
enum { LOOKS = 32, PURGES = 8, MOST_MS = 4 };

static struct tsl_lock lock;  // steps
static uint64_t due_ms;       // [lock:steps, read by all] no step before this
static tsl_unit next_unit;    // [lock:steps] to look at
static uint32_t met_young;    // [remote] this round over the region met, or a seal left, something
static uint32_t waits;        // [remote] the last round did, or a seal since

enum look { NOTHING, YOUNG, PURGED };

void tsl_remains_lock(void) { tsl_lock_acquire(&lock); }
void tsl_remains_unlock(void) { tsl_lock_release(&lock); }

bool tsl_remains_wait(void) { return tsl_load_relaxed(&waits) != 0; }

void tsl_remains_expect(void) {
  if (tsl_load_relaxed(&met_young) == 0) tsl_store_relaxed(&met_young, 1);
  if (tsl_load_relaxed(&waits) == 0) tsl_store_relaxed(&waits, 1);
}

// Who ends an epoch notes the time after others may have seen the end.
static bool is_young(uint32_t epoch, uint64_t now_ms) {
  uint64_t closed_ms = tsl_load_relaxed(&tsl_epoch_at(epoch)->closed_ms);
  return closed_ms == 0 || now_ms < closed_ms + (uint64_t)tsl_option(purge_delay_ms);
}

static enum look cell_look(tsl_cell_number number, unsigned class, uint64_t now_ms) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t out = tsl_cell_held_out(number);
  if (2 * out > tsl_load_relaxed(&cell->blocks)) return NOTHING;
  if (is_young(cell->epoch, now_ms)) return YOUNG;
  tsl_store_relaxed(&cell->blocks, out);
  return tsl_cell_purge(number, tsl_sizeclasses[class].bytes) ? PURGED : NOTHING;
}

static enum look cell_hold_and_look(tsl_cell_number number, unsigned class, uint64_t now_ms) {
  if (!tsl_cell_hold(number)) return NOTHING;
  enum look look = cell_look(number, class, now_ms);
  if (tsl_cell_put_remote(number)) tsl_mixed_drained(number);
  return look;
}

static enum look slab_look(struct tsl_slab *slab, uint64_t now_ms) {
  uint32_t left = (uint32_t)tsl_load_relaxed(&slab->left) - 1;
  uint32_t before = slab->purged ? slab->out : tsl_sizeclasses[slab->class].capacity;
  if (2 * left > before) return NOTHING;
  if (is_young(tsl_span_at(tsl_slab_unit(slab))->epoch, now_ms)) return YOUNG;
  slab->out = left;
  return tsl_slab_purge(slab) != 0 ? PURGED : NOTHING;
}

static enum look slab_hold_and_look(struct tsl_slab *slab, uint64_t now_ms) {
  if (!tsl_slab_hold(slab)) return NOTHING;
  enum look look = slab_look(slab, now_ms);
  if (tsl_slab_count_down(slab) == TSL_REMOTE_EMPTY) tsl_heap_drained(slab);
  return look;
}

// The most that any of the unit's pieces says. A cell of a page has no dead pages.
static enum look unit_look(tsl_unit unit, uint64_t now_ms) {
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
  unsigned code = tsl_entry_code(entry);
  if (entry >> TSL_CODE_BITS == TSL_HEAP_SEALED)
    return slab_hold_and_look(tsl_slab_at(unit), now_ms);
  if (entry == 0 || !tsl_code_is_cell(code) || code / 2 == TSL_CELL_4K) return NOTHING;
  enum look most = NOTHING;
  tsl_cell_number first = unit * TSL_UNIT_PAGES;
  uint32_t pages = tsl_sizeclasses[code / 2].bytes >> TSL_CELL_PAGE_LOG2;
  for (uint32_t page = 0; page < TSL_UNIT_PAGES; page += pages) {
    enum look look = cell_hold_and_look(first + page, code / 2, now_ms);
    if (look > most) most = look;
  }
  return most;
}

// The unit to look at next. 0 at the end of a round: `waits` then tells of that round.
static tsl_unit step_next(void) {
  tsl_unit unit = next_unit;
  bool at_end = unit >= tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  next_unit = unit == 0 || at_end ? (tsl_unit)tsl_region.first_unit : unit + 1;
  if (unit != 0 && !at_end) return unit;
  tsl_store_relaxed(&waits, tsl_exchange_relaxed(&met_young, 0));
  return 0;
}

// Milliseconds that this step may make up for; 0 when none has passed.
static unsigned step_begin(uint64_t now_ms) {
  if (now_ms < due_ms) return 0;
  uint64_t passed_ms = now_ms + 1 - due_ms;
  tsl_store_relaxed(&due_ms, now_ms + 1);
  return passed_ms < MOST_MS ? (unsigned)passed_ms : MOST_MS;
}

static void step(uint64_t now_ms) {
  unsigned passed_ms = step_begin(now_ms), purges = passed_ms * PURGES;
  for (unsigned looks = passed_ms * LOOKS; looks != 0 && purges != 0; looks--) {
    tsl_unit unit = step_next();
    enum look look = unit == 0 ? NOTHING : unit_look(unit, now_ms);
    if (look == YOUNG) tsl_remains_expect();
    purges -= look == PURGED;
  }
}

bool tsl_remains_step(void) {
  uint64_t now_ms = tsl_os_now_ms();
  if (now_ms >= tsl_load_relaxed(&due_ms) && tsl_lock_try(&lock)) {
    step(now_ms);
    tsl_lock_release(&lock);
  }
  return tsl_remains_wait();
}
