// samples: what a reader finds of samples in the statistics, and how many there should be.
#pragma once

#include <math.h>

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "epochs.h"
#include "homes.h"
#include "tell/points.h"
#include "tell/rows.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum { MEAN = TSL_POINTS_FINEST, MOST = 1 << 16 };
static struct tsl_heap *mine, *other;
static void *blocks[MOST];

static inline void be(struct tsl_heap *home) { tsl_heap_current = home; }

static inline void tick(void) {
  os_fake.now_ms++;
  tsl_report_tick(tsl_heap_current->home);
  tsl_home_follow_samples(tsl_heap_current->home);
}

static inline void open_homes(uint64_t mean) {
  tsl_options.sample_bytes = mean;
  homes_open((size_t)1 << 30, &mine, &other);
  tick();
  CHECK_EQ(tsl_points_mean, mean);
}

static inline const struct tsl_process_row *process(void) { return TSL_ROW(process, 0); }

struct totals {
  uint64_t allocations, bytes, frees, live, live_bytes;
};

// What a reader of the file finds.
static inline struct totals totals(void) {
  struct totals totals = {0};
  for (uint32_t i = 1; i < tsl_mirror_tables[TSL_ROWS_sites].ready; i++) {
    const struct tsl_sites_row *site = TSL_ROW(sites, i);
    if (site->depth == 0) continue;
    if (site->class < TSL_CLASSES)
      CHECK_EQ(site->bytes, site->allocations * tsl_sizeclasses[site->class].bytes);
    totals.allocations += site->allocations;
    totals.bytes += site->bytes;
    totals.frees += site->frees;
  }
  for (uint32_t i = 1; i < tsl_mirror_tables[TSL_ROWS_samples].ready; i++) {
    const struct tsl_samples_row *sample = TSL_ROW(samples, i);
    if (sample->site == 0) continue;
    totals.live += sample->times;
    totals.live_bytes += sample->times * sample->bytes;
  }
  CHECK_EQ(totals.live, totals.allocations - totals.frees);
  return totals;
}

// The samples of `count` blocks should stand for so many with the finest mean; four deviations are
// allowed. A block that holds a point stands for `each` of them, on average; that it is a whole
// number adds a variance of 1/4 at most.
static inline void check_share(uint64_t samples, double count, size_t bytes) {
  double taken = 1 - exp(-(double)bytes / (double)tsl_points_mean);
  double share = 1 - exp(-(double)bytes / TSL_POINTS_FINEST), each = share / taken;
  double deviation = sqrt(count * taken * ((1 - taken) * each * each + (each > 1) * 0.25));
  CHECK(fabs((double)samples - count * share) <= 4 * deviation + each);
}

static inline void alloc(unsigned count, size_t bytes) {
  for (unsigned i = 0; i < count; i++) {
    blocks[i] = tsl_fast_malloc(bytes);
    pattern_write(blocks[i], bytes, i);
  }
}

static inline void free_all(unsigned count, size_t bytes) {
  for (unsigned i = 0; i < count; i++) {
    CHECK(pattern_is(blocks[i], bytes, i, bytes));
    tsl_fast_free(blocks[i]);
  }
}
