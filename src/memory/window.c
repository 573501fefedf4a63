#include "memory/window.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "memory/limit.h"
#include "memory/segment.h"

enum {
  QUIET = 4,
  MOST_PATIENT = 64,
  NEXT_TO_NOTHING_LOG2 = 3,  // of what was not needed: an eighth
  LEAST_AGAIN = 64,          // that must have been taken again: 4 MiB
  LEAST_GIVEN = 64,          // 4 MiB
  RATION_GROWTH = 4
};

// [remote], relaxed: of the thread that ends a window. Where that one is stopped so long that
// another thread ends the next, the purge is steered by a mix of both; no invariant depends on it.
static size_t purged_before, refaulted_before;  // all units, at the end of the last window
static size_t units_before;                     // free dirty ones, at the same time
static size_t purged, refaulted;                // in the last windows; each counts half of the next
static size_t least_low;                        // in the patient windows since some counted
static size_t quiet, patient;                   // windows in a row; `patient` since a refault
static size_t ration;                           // WI5: units; LEAST_GIVEN where it is less

// The change of `total` since the end of the last window.
static size_t change_of(size_t total,
                        size_t *before) {  // NOLINT(readability-non-const-parameter)
  return total - tsl_exchange_relaxed(before, total);
}

static size_t halve_and_add(size_t *sum,  // NOLINT(readability-non-const-parameter)
                            size_t more) {
  size_t next = tsl_load_relaxed(sum) / 2 + more;
  tsl_store_relaxed(sum, next);
  return next;
}

// WI1. Whether units were taken again in the window that ends, and half of what went back in it
// (`gone`) and those before.
static bool waiting_pays(size_t gone, size_t again) {
  size_t all = halve_and_add(&purged, gone);
  size_t all_again = halve_and_add(&refaulted, again);
  return again != 0 && all_again >= LEAST_AGAIN && 2 * all_again >= all;
}

// What went back, and was not taken again, was not needed (`away`). The low is a moment's value,
// and may lie above the others.
static bool is_quiet(size_t low, size_t units, size_t away) {
  size_t most = tsl_at_least(units, tsl_exchange_relaxed(&units_before, units));
  size_t needed = most > low + away ? most - low - away : 0;
  bool is_next_to_nothing = low != 0 && needed <= low >> NEXT_TO_NOTHING_LOG2;
  size_t windows = is_next_to_nothing ? tsl_load_relaxed(&quiet) + 1 : 0;
  tsl_store_relaxed(&quiet, windows);
  return windows >= QUIET;
}

// The number of the patient window that ends; 0: it was none.
static size_t patient_next(bool is_quiet, bool waiting_pays) {
  size_t before = tsl_load_relaxed(&patient);
  if (is_quiet) return 0;             // WI2
  if (tsl_limit_is_near()) return 0;  // WI3
  if (waiting_pays) return 1;         // WI1
  return before == 0 || before == MOST_PATIENT ? 0 : before + 1;
}

static size_t patient_low(size_t number, size_t low_units) {
  if (number % TSL_PATIENCE == 1) tsl_store_relaxed(&least_low, SIZE_MAX);
  size_t low = tsl_at_most(tsl_load_relaxed(&least_low), low_units);
  tsl_store_relaxed(&least_low, low);
  return number % TSL_PATIENCE == 0 ? low : 0;
}

// WI4
static size_t part_of(size_t units, bool is_quiet) {
  if (units <= 2 * LEAST_GIVEN) return tsl_at_most(units, LEAST_GIVEN);
  return is_quiet ? units - units / 4 : units / 2;
}

// WI5
static size_t ration_take(size_t wanted) {
  size_t most = tsl_at_least(tsl_load_relaxed(&ration), LEAST_GIVEN);
  if (wanted < most) return wanted;
  tsl_store_relaxed(&ration, tsl_at_most(most * RATION_GROWTH, SIZE_MAX / RATION_GROWTH));
  return most;
}

size_t tsl_window_end(size_t low_units, size_t units) {
  struct tsl_unit_counts counts = tsl_units_counts();
  size_t gone = change_of(counts.purged, &purged_before);
  size_t again = change_of(counts.refaulted, &refaulted_before);
  bool quiet_now = is_quiet(low_units, units, gone > again ? gone - again : 0);
  size_t number = patient_next(quiet_now, waiting_pays(gone, again));
  tsl_store_relaxed(&patient, number);
  if (number == 1) tsl_store_relaxed(&ration, 0);
  if (number != 0) return part_of(patient_low(number, low_units), false);
  size_t part = part_of(low_units, quiet_now);
  return quiet_now || tsl_limit_is_near() ? part : ration_take(part);
}
