#include "tell/request.h"

#include "memory/purge.h"
#include "tell/process.h"
#include "tell/rows.h"

static uint32_t followed;  // [remote] number of the last request that a thread took up

// RQ1: true for one thread only.
static bool is_asked(uint32_t *number) {
  const struct tsl_control_row *control = tsl_report_is_on() ? TSL_ROW(control, 0) : NULL;
  uint32_t last = tsl_load_relaxed(&followed);
  *number = control == NULL ? 0 : tsl_load_relaxed(&control->purge_request);
  return *number != 0 && *number != last && tsl_cas_relaxed(&followed, &last, *number);
}

bool tsl_request_follow(void) {
  uint32_t number;
  if (tsl_likely(!is_asked(&number))) return false;
  tsl_purge_all(0);
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL || tsl_load_relaxed(&followed) != number) return true;
  tsl_report_process();
  tsl_store_release(&row->purge_request, (uint64_t)number);  // RQ2; pairs: mirror
  return true;
}

void tsl_request_tick(void) {
  if (!tsl_purge_has_helper()) tsl_request_follow();
}

void tsl_request_after_fork(void) { tsl_store_relaxed(&followed, 0); }
