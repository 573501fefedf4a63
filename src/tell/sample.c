#include "tell/sample.h"

#include "base/options.h"
#include "base/probe.h"
#include "state/epoch.h"
#include "tell/events.h"
#include "tell/rows.h"
#include "tell/sites.h"

enum { ROW_BITS = 17 };  // of a sample's number; the rest counts the forks

_Static_assert(TSL_MOST_SAMPLES < 1 << ROW_BITS, "a row fits a sample's number");
static uint32_t links[TSL_MOST_SAMPLES];  // [remote] of free rows of samples; row 0 is not used
static struct tsl_stack free_rows;        // [remote]
static uint32_t last_row;                 // [remote]
static uint32_t forks;  // [const between forks] how many lie between us and the first

enum reach { REACH_UNTOLD, REACH_NOTHING, REACH_WATCHED, REACH_ALL };
static uint32_t followed_request;  // [remote] number of the last one to hurry
static uint32_t told_reach;        // [remote] what is sampled, as the file tells
static bool inherits;              // [const between forks] blocks of a parent

static uint32_t *link_of(uint32_t row) { return &links[row]; }

static void count_sample(bool is_lost) {
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row != NULL) tsl_add_relaxed(is_lost ? &row->samples_lost : &row->samples_taken, 1);
}

// The first terms of the series, which costs nothing when nobody listens to the probe.
uint64_t tsl_sample_weight(size_t bytes) {
  const uint64_t mean = TSL_POINTS_FINEST;
  return bytes < 3 * mean ? mean + bytes / 2 + bytes * bytes / (12 * mean) : bytes;
}

static uint32_t take_row(void) {
  uint32_t row = tsl_stack_pop(&free_rows, link_of);
  if (row != 0) return row;
  row = tsl_add_relaxed(&last_row, 1) + 1;
  return row < TSL_MOST_SAMPLES ? row : 0;
}

static void write_sample(struct tsl_samples_row *row, uint32_t site, uint32_t slot,
                         const void *block, size_t bytes, uint32_t times) {
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(slot)->word);
  TSL_PUT(row, address, (uintptr_t)block);
  TSL_PUT(row, bytes, bytes);
  TSL_PUT(row, times, times);
  TSL_PUT(row, epoch, slot == 0 ? 0 : tsl_epoch_id(slot, word));
  TSL_PUT(row, sampled_ms, tsl_os_now_ms());
  tsl_store_release(&row->site, site);  // pairs: mirror
}

// What a guest allocates is told by its own label. One that was closed meanwhile may be over.
static uint32_t told_label(const struct tsl_heap *heap) {
  uint32_t slot = heap->epoch, inner = tsl_epoch_slot(heap->name);
  if (inner != 0) {
    const struct tsl_epoch *epoch = tsl_epoch_at(inner);
    bool is_guest = tsl_load_relaxed(&epoch->host) != 0;
    if (is_guest && tsl_epoch_id(inner, tsl_load_relaxed(&epoch->word)) == heap->name) slot = inner;
  }
  return slot == 0 ? TSL_LABEL_DEFAULT : tsl_load_relaxed(&tsl_epoch_at(slot)->label);
}

uint32_t tsl_sample_begin(struct tsl_heap *heap, const void *block, size_t bytes, unsigned class,
                          uint32_t times) {
  uint32_t site = tsl_site_of(heap->home, told_label(heap), class);
  uint32_t number = site == 0 ? 0 : take_row();
  struct tsl_sites_row *origin = number == 0 ? NULL : TSL_ROW(sites, site);
  struct tsl_samples_row *row = origin == NULL ? NULL : TSL_ROW_ONCE(samples, number);
  if (row == NULL) {
    if (number != 0) tsl_stack_push(&free_rows, number, link_of);
    count_sample(true);
    return 0;
  }
  count_sample(false);
  TSL_PROBE_SAMPLED(block, bytes, times * tsl_sample_weight(bytes));
  tsl_watch_begin(heap, number);
  write_sample(row, site, heap->epoch, block, bytes, times);
  tsl_add_relaxed(&origin->allocations, times);
  tsl_add_relaxed(&origin->bytes, times * bytes);
  tsl_event_allocated(forks << ROW_BITS | number, site, bytes, times);
  return forks << ROW_BITS | number;
}

void tsl_sample_large(struct tsl_heap *heap, void *block) {
  struct tsl_span *span = tsl_span_at(tsl_unit_of(block));
  uint32_t times = tsl_points_of_large(heap, span->bytes);
  if (times != 0) span->sample = tsl_sample_begin(heap, block, span->bytes, TSL_CLASSES, times);
}

// NULL for a sample from before a fork, whose row was the parent's.
static struct tsl_samples_row *row_of(uint32_t sample) {
  if (sample >> ROW_BITS != forks) return NULL;
  return TSL_ROW_MADE(samples, sample & ((1u << ROW_BITS) - 1));
}

bool tsl_sample_is_of(uint32_t sample, const void *block) {
  const struct tsl_samples_row *row = sample == 0 ? NULL : row_of(sample);
  return row != NULL && tsl_load_relaxed(&row->address) == (uintptr_t)block;
}

// Below short_ms there is one decade: the clock has a grain of several ms.
static unsigned decade_of(uint64_t lived_ms) {
  unsigned decade = 0;
  uint64_t bound_ms = TSL_NUMBER_short_ms;
  for (; decade < TSL_NUMBER_decades - 1 && lived_ms >= bound_ms; decade++) bound_ms *= 10;
  return decade;
}

// Whoever frees the block owns its row.
static void count_end(struct tsl_sites_row *origin, const struct tsl_samples_row *row) {
  uint64_t times = tsl_load_relaxed(&row->times);
  uint64_t lived_ms = tsl_os_now_ms() - tsl_load_relaxed(&row->sampled_ms);
  tsl_add_relaxed(&origin->frees, times);
  tsl_add_relaxed(&origin->lifetime_ms, times * lived_ms);
  tsl_add_relaxed(&origin->frees_by_decade[decade_of(lived_ms)], times);
  if (lived_ms < TSL_NUMBER_short_ms) tsl_add_relaxed(&origin->short_frees, times);
}

// P2.
void tsl_sample_end(uint32_t sample, const void *block) {
  if (!tsl_sample_is_of(sample, block)) return;
  struct tsl_samples_row *row = row_of(sample);
  struct tsl_sites_row *origin = TSL_ROW(sites, tsl_load_relaxed(&row->site));
  TSL_PROBE_ENDED(tsl_load_relaxed(&row->address));
  if (origin != NULL) count_end(origin, row);
  TSL_PUT(row, site, 0);
  uint32_t number = sample & ((1u << ROW_BITS) - 1);
  tsl_watch_end(number);
  tsl_stack_push(&free_rows, number, link_of);
}

// For as many blocks as before: how likely it was to be sampled does not change.
void tsl_sample_resize(uint32_t sample, size_t bytes) {
  struct tsl_samples_row *row = row_of(sample);
  if (row != NULL) TSL_PUT(row, bytes, bytes);
}

void tsl_sample_move(uint32_t sample, const void *block) {
  struct tsl_samples_row *row = row_of(sample);
  if (row != NULL) TSL_PUT(row, address, (uintptr_t)block);
}

// The smaller the mean the more there is to do; what somebody else wrote is not trusted (M1).
static uint64_t mean_within_bounds(uint64_t bytes) {
  return bytes != 0 && bytes < TSL_POINTS_FINEST ? TSL_POINTS_FINEST : bytes;
}

static uint32_t asked_bytes(void) {
  const struct tsl_control_row *control = TSL_ROW(control, 0);
  return control == NULL ? 0 : tsl_load_relaxed(&control->sample_bytes);
}

// P3: a request in the control row overrides the option.
static uint64_t wanted_mean(void) {
  uint32_t asked = asked_bytes();
  if (TSL_SECURE || asked == TSL_NUMBER_no_samples) return 0;
  return mean_within_bounds(asked != 0 ? asked : tsl_option(sample_bytes));
}

// Nothing, where somebody wants all or none.
static uint64_t wanted_watch(void) {
  bool is_none = asked_bytes() == TSL_NUMBER_no_samples || wanted_mean() != 0;
  if (TSL_SECURE || is_none || !tsl_watch_waits()) return 0;
  return mean_within_bounds(tsl_option(watch_bytes));
}

static uint32_t watch_request(void) {
  const struct tsl_control_row *control = TSL_ROW(control, 0);
  return control == NULL ? 0 : tsl_load_relaxed(&control->watch_request);
}

// WA6.
static void follow_watch_request(void) {
  uint32_t request = watch_request();
  if (request == tsl_load_relaxed(&followed_request)) return;
  tsl_store_relaxed(&followed_request, request);
  tsl_store_relaxed(&tsl_watch_hurries_until_ms, tsl_os_now_ms() + TSL_SAMPLE_HURRY_MS);
}

bool tsl_sample_waits(uint64_t mean) { return tsl_report_is_on() && wanted_mean() != mean; }

bool tsl_sample_watch_waits(void) {
  if (!tsl_report_is_on()) return false;
  return wanted_watch() != tsl_load_relaxed(&tsl_watch_bytes) ||
         watch_request() != tsl_load_relaxed(&followed_request);
}

// P4. Somebody may have asked before the first call, but not before the file was made. Of what a
// child has from its parent nothing is sampled.
static void tell_reach(struct tsl_process_row *row, enum reach reach) {
  if (tsl_load_relaxed(&told_reach) == reach) return;
  uint32_t told = tsl_exchange_relaxed(&told_reach, reach);
  bool is_first = told == REACH_UNTOLD && asked_bytes() == 0;
  bool is_as_ever = is_first && (!inherits || reach == REACH_NOTHING);
  if (!is_as_ever && told != reach) TSL_PUT(row, sampling_since_ms, tsl_os_now_ms());
}

void tsl_sample_follow(void) {
  uint64_t mean = wanted_mean(), watch = wanted_watch();
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL) return;
  tell_reach(row, mean != 0 ? REACH_ALL : watch != 0 ? REACH_WATCHED : REACH_NOTHING);
  TSL_PUT(row, sample_bytes, mean);
  TSL_PUT(row, watch_bytes, watch);
  if ((mean | watch) != 0) TSL_PUT(row, weight_bytes, TSL_POINTS_FINEST);
  follow_watch_request();
  bool is_new = tsl_load_relaxed(&tsl_points_mean) != mean;
  if (!is_new && tsl_load_relaxed(&tsl_watch_bytes) == watch) return;
  tsl_store_relaxed(&tsl_points_mean, mean);
  tsl_store_relaxed(&tsl_watch_bytes, watch);
  tsl_watch_renew();
}

// The tables of the parent's file are not the child's.
void tsl_sample_after_fork(void) {
  tsl_sites_after_fork();
  tsl_events_after_fork();
  told_reach = REACH_UNTOLD;
  followed_request = 0;
  tsl_watch_hurries_until_ms = 0;
  inherits = tsl_region.base != 0;
  tsl_points_mean = 0;  // until the child has a file
  tsl_watch_bytes = 0;
  tsl_watch_renew();
  if (last_row == 0) return;
  tsl_stack_clear(&free_rows);
  last_row = 0;
  tsl_watch_after_fork();
  forks = (forks + 1) & (UINT32_MAX >> ROW_BITS);
}
