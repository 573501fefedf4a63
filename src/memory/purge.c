#include "memory/purge.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/options.h"
#include "base/probe.h"
#include "memory/detention.h"
#include "memory/limit.h"
#include "memory/mirror.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "memory/window.h"
#include "os/os.h"

// A step gives back at most 1 MiB for each millisecond since the last step, of which MOST_LATE_MS
// count, and the rest of a huge page.
enum {
  PURGE_STEP_UNITS = 16,
  PURGE_STEP_MS = 1,
  MOST_LATE_MS = 4,
  MOST_RUNS = 16,
  DRAIN_UNITS = 512,
  LIMIT_UNITS = 64,
  REFUSED_REST_MS = 100
};

static ptrdiff_t loose_total;  // [remote] bytes in slabs that no helper has looked at
static ptrdiff_t sent_total;   // [remote] bytes freed in memory of others, not collected
static ptrdiff_t sent_seen;    // [remote] of these, when a round began
static uint64_t purge_due_ms;  // [remote] the thread that moves it on does the step
// [due] Of the thread that does the step: these three. The helper reads when the window ends.
static uint64_t window_began_ms;
static size_t cached_surplus;  // units that still go to the segments because of the last window
static size_t dirty_surplus;   // units that still go back because of the last window
static size_t cursor;          // [remote] a hint: the segment that was purged last
static size_t keep_units;      // [remote] free units that windows leave alone
static uint64_t refused_ms;    // [remote] the system refused to take pages back for the soft limit
static uint32_t has_helper;    // [helper, read by any]
static uint32_t wanted_now;    // [remote] the helper is to purge

// The units that a step now may purge, 0 when none is due. Only one thread at a time gets more.
static size_t purge_claim(uint64_t now) {
  uint64_t due = tsl_load_relaxed(&purge_due_ms);
  if (now < due || !tsl_cas_relaxed(&purge_due_ms, &due, now + PURGE_STEP_MS)) return 0;
  uint64_t passed_ms = now - due + PURGE_STEP_MS;
  return PURGE_STEP_UNITS * (size_t)(passed_ms < MOST_LATE_MS ? passed_ms : MOST_LATE_MS);
}

uint64_t tsl_purge_window_end_ms(void) {
  return tsl_load_relaxed(&window_began_ms) + tsl_limit_delay_ms();
}

static size_t but_kept(size_t units) {
  size_t keep = tsl_load_relaxed(&keep_units);
  return units > keep ? units - keep : 0;
}

// Where anything goes back, the cache is drained of all that was not needed, so that neighbours
// meet.
static void window_turn(uint64_t now) {
  if (now < tsl_purge_window_end_ms()) return;
  tsl_store_relaxed(&window_began_ms, now);
  size_t cached = tsl_unit_cache_low(), low = cached + tsl_units_dirty_low();
  size_t units = tsl_unit_cache_units() + tsl_units_dirty();
  size_t given = tsl_window_end(but_kept(low), but_kept(units));
  tsl_store_relaxed(&cached_surplus, given == 0 ? 0 : but_kept(cached));
  tsl_store_relaxed(&dirty_surplus, given);
}

void tsl_purge_keep(size_t bytes) {
  size_t units = tsl_divide_up(bytes, TSL_UNIT_BYTES), kept = tsl_load_relaxed(&keep_units);
  while (kept < units && !tsl_cas_relaxed(&keep_units, &kept, units)) continue;
}

// Up to so many units of the unit cache, DRAIN_UNITS at most. Returns how many.
static size_t cache_drain(size_t units) {
  size_t drained = tsl_unit_cache_drain(tsl_at_most(units, DRAIN_UNITS));
  tsl_units_dirty_before(drained);
  return drained;
}

// Moves surplus from the unit cache to the segments, where neighbours meet and go back in one call.
// False when there is none.
static bool step_drain(void) {
  size_t surplus = tsl_load_relaxed(&cached_surplus);
  size_t drained = cache_drain(surplus);
  tsl_store_relaxed(&cached_surplus, drained == 0 ? 0 : surplus - drained);
  return drained != 0;
}

static bool surplus_left(void) {
  return (tsl_load_relaxed(&dirty_surplus) | tsl_load_relaxed(&cached_surplus)) != 0;
}

size_t tsl_purge_idle_bytes(void) {
  return but_kept(tsl_units_dirty() + tsl_unit_cache_units()) << TSL_UNIT_LOG2;
}

void tsl_purge_loosen(size_t before, size_t after) {
  if (before != after) tsl_add_relaxed(&loose_total, (ptrdiff_t)(after - before));
}

// What was collected is taken off both: what is sent next is more again.
void tsl_purge_send(ptrdiff_t bytes) {
  ptrdiff_t total = tsl_add_relaxed(&sent_total, bytes) + bytes;
  if (total < tsl_load_relaxed(&sent_seen)) tsl_store_relaxed(&sent_seen, total);
}

void tsl_purge_see_sent(void) { tsl_store_relaxed(&sent_seen, tsl_load_relaxed(&sent_total)); }

void tsl_purge_forget_loose(void) {
  tsl_store_relaxed(&loose_total, 0);
  tsl_purge_see_sent();
}

static size_t at_least_none(ptrdiff_t bytes) { return bytes < 0 ? 0 : (size_t)bytes; }

// Below zero while a thread is about to add what the helper has taken already.
size_t tsl_purge_returnable_bytes(void) {
  ptrdiff_t sent = tsl_load_relaxed(&sent_total) - tsl_load_relaxed(&sent_seen);
  return tsl_purge_idle_bytes() + at_least_none(tsl_load_relaxed(&loose_total)) +
         at_least_none(sent);
}

bool tsl_purge_waits(void) { return tsl_purge_idle_bytes() != 0; }

// Purges up to MOST_RUNS runs. Returns what is left of `most` units; `*none`: because there are no
// more, or the system refused.
static size_t runs_purge(size_t most, bool *none) {
  size_t from = tsl_load_relaxed(&cursor), left = most, purged = 1;
  for (unsigned runs = 0; runs < MOST_RUNS && left != 0 && purged != 0; runs++) {
    purged = tsl_units_purge(&from, left);
    left -= tsl_at_most(purged, left);
  }
  tsl_store_relaxed(&cursor, from);
  *none = purged == 0;
  return left;
}

static void step_purge(size_t most) {
  bool none;
  size_t surplus = tsl_load_relaxed(&dirty_surplus), wanted = tsl_at_most(surplus, most);
  size_t left = runs_purge(wanted, &none);
  tsl_store_relaxed(&dirty_surplus, none ? 0 : surplus - (wanted - left));
}

// False when the system refused and nothing went back. That nothing was found is no refusal: other
// threads may have the runs, or the segments' locks.
static bool excess_purge(size_t excess) {
  bool none;
  uint64_t refused = tsl_load_relaxed(&tsl_counts.purges_refused);
  return runs_purge(excess, &none) < excess ||
         tsl_load_relaxed(&tsl_counts.purges_refused) == refused;
}

// After memory was taken, whether or not any goes back: the limit refuses nothing.
void tsl_purge_for_limit(size_t units) {
  size_t excess = tsl_at_most(tsl_limit_excess(), units + LIMIT_UNITS);
  if (tsl_likely(excess == 0)) return;
  if (tsl_os_now_ms() < tsl_load_relaxed(&refused_ms) + REFUSED_REST_MS) return;
  cache_drain(excess);
  if (!excess_purge(excess)) tsl_store_relaxed(&refused_ms, tsl_os_now_ms());
}

bool tsl_purge_step(void) {
  uint64_t now = tsl_os_now_ms();
  size_t most = purge_claim(now);
  if (most != 0) {
    window_turn(now);
    if (!step_drain()) step_purge(most);
  }
  return surplus_left();
}

bool tsl_purge_tick(void) { return !tsl_purge_has_helper() && tsl_purge_step(); }

// What is detained or cached comes first: only then is it among the units that are purged.
size_t tsl_purge_all(size_t keep_bytes) {
  size_t keep = keep_bytes >> TSL_UNIT_LOG2, purged = 0, from = 0;
  tsl_store_relaxed(&keep_units, 0);
  tsl_detention_end();
  tsl_unit_cache_drain(SIZE_MAX);
  while (tsl_units_dirty() > keep) {
    size_t excess = tsl_units_dirty() - keep;
    size_t step = tsl_units_purge(&from, excess < TSL_SEGMENT_UNITS ? excess : TSL_SEGMENT_UNITS);
    if (step == 0) break;
    purged += step;
  }
  return purged << TSL_UNIT_LOG2;
}

struct tsl_purged tsl_purge_dead(uintptr_t start, size_t bytes,
                                 bool (*is_dead)(const void *, size_t offset, size_t page_bytes),
                                 const void *context) {
  size_t page_bytes = tsl_os_page_bytes(), pages = bytes / page_bytes, purged = 0;
  unsigned calls = 0, refused = 0;
  for (size_t at = 0, end; at < pages; at = end + 1) {
    for (end = at; end < pages && is_dead(context, end * page_bytes, page_bytes);) end++;
    size_t run = (end - at) * page_bytes;
    if (run == 0) continue;
    bool done = tsl_os_purge((void *)(start + at * page_bytes), run);
    purged += done ? run : 0;
    refused += !done;
    calls++;
  }
  if (calls == 0) return (struct tsl_purged){0};
  if (purged != 0) tsl_store_relaxed(&tsl_span_at(tsl_unit_of((void *)start))->holed, 1);
  tsl_add_relaxed(&tsl_counts.purges, calls - refused);
  tsl_add_relaxed(&tsl_counts.purges_refused, refused);
  tsl_add_relaxed(&tsl_counts.purged_bytes, purged);
  TSL_PROBE2(purge, start, purged);
  return (struct tsl_purged){purged, calls};
}

void tsl_purge_now(void) {
  if (!tsl_purge_has_helper()) {
    tsl_purge_all(0);
  } else if (tsl_exchange_acq_rel(&wanted_now, 1) == 0) {  // pairs: purge-now
    tsl_os_wake(&wanted_now);
  }
}

bool tsl_purge_help(uint64_t ms) {
  tsl_os_sleep_ms(&wanted_now, ms);
  if (tsl_load_relaxed(&wanted_now) == 0) return false;
  tsl_exchange_acq_rel(&wanted_now, 0);  // pairs: purge-now
  tsl_purge_all(0);
  return true;
}

bool tsl_purge_has_helper(void) {
  return tsl_load_acquire(&has_helper) != 0;  // pairs: helper-lives
}
void tsl_purge_set_helper(bool lives) {
  tsl_store_release(&has_helper, lives);  // pairs: helper-lives
}

size_t tsl_purge_much_bytes(void) {
  return tsl_limit_is_near() ? TSL_PURGE_NEAR_BYTES : TSL_PURGE_MUCH_BYTES;
}

// How near the limit is, is asked last: it takes longest.
static bool calls_helper(size_t bytes) {
  return bytes >= TSL_PURGE_NEAR_BYTES && bytes >= tsl_purge_much_bytes();
}

static void nobody(size_t more_bytes TSL_UNUSED) {}

void (*tsl_purge_helper_missing)(size_t more_bytes) = nobody;

void tsl_purge_call_helper(size_t more_bytes) {
  uint64_t wanted = tsl_option(helper);
  if (wanted == TSL_HELPER_NEVER || tsl_purge_has_helper()) return;
  if (wanted == TSL_HELPER_ALWAYS || calls_helper(tsl_purge_returnable_bytes() + more_bytes))
    tsl_purge_helper_missing(more_bytes);
}
