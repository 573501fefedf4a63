#include "memory/purge.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/options.h"
#include "base/probe.h"
#include "memory/detention.h"
#include "memory/mirror.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "os/os.h"

// 1 MiB a millisecond at most; a late step makes up for a few.
enum {
  STEP_UNITS = 16,
  STEP_MS = 1,
  MOST_LATE_MS = 4,
  MOST_RUNS = 16,
  DRAIN_UNITS = 512,
  LEAST_UNITS = 64
};

static uint64_t step_due_ms;  // [remote] whoever moves it on does the step
static uint64_t
    window_end_ms;  // [due] written by the thread that does the step; so are the next three
static size_t cached_surplus;  // units in the unit cache that the last window did not need
static size_t dirty_surplus;   // units that go back, once they are all in the segments
static size_t cursor;
static size_t keep_units;    // [remote] free units that surplus leaves alone
static uint32_t has_helper;  // [helper]
static uint32_t wanted_now;  // [remote] the helper is to purge

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

// The units that a step now may purge, 0 when none is due. Only one thread at a time gets more.
static size_t step_claim(uint64_t now) {
  uint64_t due = tsl_load_relaxed(&step_due_ms);
  if (now < due || !tsl_cas_relaxed(&step_due_ms, &due, now + STEP_MS)) return 0;
  uint64_t passed_ms = now - due + STEP_MS;
  return STEP_UNITS * (size_t)(passed_ms < MOST_LATE_MS ? passed_ms : MOST_LATE_MS);
}

// Half of what a window did not need, and at least 4 MiB of it: what a program needs now and then
// does not go back as a whole in each pause.
static size_t part_of(size_t units) {
  return units > 2 * LEAST_UNITS ? units / 2 : at_most(units, LEAST_UNITS);
}

static void window_turn(uint64_t now) {
  if (now < tsl_load_relaxed(&window_end_ms)) return;
  tsl_store_relaxed(&window_end_ms, now + (uint64_t)tsl_option(purge_delay_ms));
  size_t keep = tsl_load_relaxed(&keep_units), cached = tsl_unit_cache_low();
  size_t left = keep > cached ? keep - cached : 0, dirty = tsl_units_dirty_low();
  size_t surplus = cached > keep ? cached - keep : 0;
  tsl_store_relaxed(&cached_surplus, surplus);
  tsl_store_relaxed(&dirty_surplus, part_of(surplus + (dirty > left ? dirty - left : 0)));
}

void tsl_purge_keep(size_t bytes) {
  size_t units = tsl_divide_up(bytes, TSL_UNIT_BYTES), kept = tsl_load_relaxed(&keep_units);
  while (kept < units && !tsl_cas_relaxed(&keep_units, &kept, units)) continue;
}

// Moves surplus from the unit cache to the segments, where neighbours meet and go back in one call.
// False when there is none.
static bool step_drain(void) {
  size_t surplus = tsl_load_relaxed(&cached_surplus);
  size_t drained = tsl_unit_cache_drain(at_most(surplus, DRAIN_UNITS));
  tsl_units_dirty_before(drained);
  tsl_store_relaxed(&cached_surplus, drained == 0 ? 0 : surplus - drained);
  return drained != 0;
}

static bool surplus_left(void) {
  return (tsl_load_relaxed(&dirty_surplus) | tsl_load_relaxed(&cached_surplus)) != 0;
}

bool tsl_purge_waits(void) {
  return tsl_units_dirty() + tsl_unit_cache_units() > tsl_load_relaxed(&keep_units);
}

static void step_purge(size_t most) {
  size_t surplus = tsl_load_relaxed(&dirty_surplus);
  size_t from = tsl_load_relaxed(&cursor), left = at_most(surplus, most), purged = 1;
  for (unsigned runs = 0; runs < MOST_RUNS && left != 0 && purged != 0; runs++) {
    purged = tsl_units_purge(&from, left);
    left -= purged;
    surplus = purged == 0 ? 0 : surplus - purged;
  }
  tsl_store_relaxed(&cursor, from);
  tsl_store_relaxed(&dirty_surplus, surplus);
}

bool tsl_purge_tick(void) {
  uint64_t now = tsl_os_now_ms();
  size_t most = step_claim(now);
  if (most != 0) {
    window_turn(now);
    if (!step_drain()) step_purge(most);
  }
  return surplus_left();
}

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

unsigned tsl_purge_dead(uintptr_t start, size_t bytes,
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
  if (calls == 0) return 0;
  tsl_add_relaxed(&tsl_counts.purges, calls - refused);
  tsl_add_relaxed(&tsl_counts.purges_refused, refused);
  tsl_add_relaxed(&tsl_counts.purged_bytes, purged);
  TSL_PROBE2(purge, start, purged);
  return calls;
}

void tsl_purge_now(void) {
  if (tsl_load_relaxed(&has_helper) == 0) {
    tsl_purge_all(0);
  } else if (tsl_exchange_acq_rel(&wanted_now, 1) == 0) {  // pairs: purge-now
    tsl_os_wake(&wanted_now);
  }
}

void tsl_purge_help(uint64_t ms) {
  tsl_os_sleep_ms(&wanted_now, ms);
  if (tsl_load_relaxed(&wanted_now) == 0) return;
  tsl_exchange_acq_rel(&wanted_now, 0);  // pairs: purge-now
  tsl_purge_all(0);
}

void tsl_purge_set_helper(bool runs) { tsl_store_relaxed(&has_helper, runs); }
