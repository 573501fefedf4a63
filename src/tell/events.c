#include "tell/events.h"

#include "base/options.h"
#include "tell/rows.h"
#include "tell/sites.h"

static uint32_t last_event;  // [remote] row 0 is not used

static struct tsl_events_row *next_row(void) {
  if (tsl_load_relaxed(&last_event) >= TSL_MOST_EVENTS) return NULL;
  return TSL_ROW_ONCE(events, tsl_add_relaxed(&last_event, 1) + 1);
}

static void write_event(uint32_t sample, uint32_t site, size_t bytes, uint32_t times) {
  struct tsl_events_row *row = next_row();
  if (row == NULL) return;
  TSL_PUT(row, bytes, bytes);
  TSL_PUT(row, times, times);
  TSL_PUT(row, sample, sample);
  TSL_PUT(row, site, site);
  TSL_PUT(row, thread, tsl_os_thread());
  tsl_store_release(&row->at_ns, tsl_os_now_ns());  // pairs: mirror
}

void tsl_event_allocated(uint32_t sample, uint32_t site, size_t bytes, uint32_t times) {
  if (tsl_option(sample_events) != 0) write_event(sample, site, bytes, times);
}

// A thread without a home has no place for the unwinder's state.
void tsl_event_freed(struct tsl_home *home, uint32_t sample) {
  if (tsl_option(sample_events) == 0) return;
  uint32_t site = home == &tsl_home_empty ? 0 : tsl_site_of(home, 0, TSL_CLASSES);
  write_event(sample, site, 0, 0);
}

void tsl_events_after_fork(void) { last_event = 0; }
