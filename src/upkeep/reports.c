#include "upkeep/reports.h"

#include "base/options.h"
#include "heap/hold.h"
#include "memory/units.h"
#include "tell/epochs.h"
#include "tell/heaps.h"
#include "tell/process.h"
#include "tell/request.h"
#include "tell/sample.h"

enum { MUCH_UNITS = 40 };  // 2.5 MiB: beyond what commands such as ls, git or bash open

static uint32_t tried;      // [remote]
static uint64_t began_ms;   // [remote] 0: not known yet
static size_t began_units;  // [remote] open when a fork made the process, otherwise 0

// Reports the epochs that hold memory already, each of them held meanwhile. Threads report their
// heaps at their next tick.
static void report_epochs(void) {
  struct tsl_epochs_row *first = TSL_ROW(epochs, 0);
  if (first == NULL) return;
  TSL_PUT(first, opened_ms, tsl_os_now_ms());
  for (uint32_t slot = 1; slot <= tsl_load_relaxed(&tsl_region.last_epoch); slot++) {
    if (!tsl_epoch_hold(slot)) continue;
    tsl_report_held_epoch(slot);
    tsl_epoch_drain(slot, 1);
  }
}

// The table of heaps comes last: once it has rows, other threads begin to report
// (tsl_report_is_on). Without memory for it the next tick or refill tries again.
void tsl_report_start(void) {
  if (tsl_option(stats) == 0 || tsl_load_relaxed(&tried) != 0) return;
  if (tsl_exchange_relaxed(&tried, 1) != 0 || !tsl_mirror_open(&tsl_rows_layout)) return;
  tsl_report_classes();
  tsl_report_label(TSL_LABEL_DEFAULT);
  tsl_report_name();
  tsl_report_process();
  if (TSL_ROW(bins, 0) == NULL || TSL_ROW(heaps, 0) == NULL) {
    tsl_store_relaxed(&tried, 0);
  } else {
    tsl_report_all_homeless();
    report_epochs();
    tsl_sample_follow();
  }
}

static bool is_old_enough(uint64_t now_ms) {
  if (tsl_load_relaxed(&began_ms) == 0) tsl_store_relaxed(&began_ms, now_ms);
  return tsl_option(sample_bytes) != 0 ||
         now_ms - tsl_load_relaxed(&began_ms) >= tsl_option(stats_delay_ms);
}

static bool is_much(void) {
  return tsl_units_open() - tsl_load_relaxed(&began_units) >= MUCH_UNITS;
}

// The thread may be silent from here on: its home is told at once.
static void start_and_tell(void) {
  tsl_report_start();
  if (tsl_report_is_on() && tsl_heap_current != &tsl_home_empty.heap)
    tsl_report_heap(&tsl_heap_current->home->heap);
}

// Who asks for samples or events asks for those of the first blocks, too. While one thread makes
// the file, others go on without samples: so it is made while there are no others.
static bool wants_the_first(void) {
  return tsl_option(sample_bytes) != 0 || tsl_option(sample_events) != 0;
}

void tsl_report_at_refill(void) {
  if (!tsl_report_is_on() && (wants_the_first() || is_much())) start_and_tell();
}

void tsl_report_at_large(void) {
  tsl_request_tick();
  if (tsl_report_is_on() || tsl_option(stats) == 0 || tsl_load_relaxed(&tried) != 0) return;
  if (is_old_enough(tsl_os_now_ms()) || is_much()) start_and_tell();
}

void tsl_report_tick(struct tsl_home *home) {
  uint64_t now_ms = tsl_os_now_ms();
  if (now_ms == home->told_ms) return;
  home->told_ms = now_ms;
  if (!tsl_report_is_on() && is_old_enough(now_ms)) tsl_report_start();
  if (!tsl_report_is_on()) return;
  tsl_report_heap(&home->heap);
  if (tsl_heap_current->home == home && tsl_heap_current != &home->heap)
    tsl_report_heap(tsl_heap_current);
  tsl_report_process();
  tsl_sample_follow();
  tsl_mirror_beat(now_ms);
}

__attribute__((destructor)) static void report_end(void) { tsl_mirror_close(); }

void tsl_report_after_fork(void) {
  tsl_mirror_after_fork();
  tsl_store_relaxed(&tried, 0);
  tsl_store_relaxed(&began_ms, 0);
  tsl_store_relaxed(&began_units, tsl_units_open());
  tsl_request_after_fork();
  tsl_report_forget_heaps();
  tsl_report_forget_epochs();
}
