// records: epochs without heaps, and a thread that opens and ends them.
#pragma once

#include "epoch/open.h"
#include "heap/hold.h"
#include "memory/growth.h"
#include "os_fake.h"
#include "state.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "upkeep/pool.h"

static struct tsl_home *home;

static inline void open_region(void) {
  os_fake.limit_bytes = (size_t)1 << 26;
  os_fake.now_ms = 1000;
  CHECK(tsl_region_init());
  tsl_epoch_init();
  home = tsl_home_take();
  CHECK(home != NULL);
  tsl_heap_current = &home->heap;
}

static inline tslab_epoch open_with(const tslab_epoch_options *options) {
  tslab_epoch id = TSLAB_NO_EPOCH;
  CHECK_EQ(tsl_epoch_open(7, options, &id), 0);
  CHECK(id != TSLAB_NO_EPOCH && id != TSLAB_DEFAULT);
  CHECK_EQ(tsl_epoch_check(id), 0);
  return id;
}

static inline tslab_epoch open_epoch(void) { return open_with(&(tslab_epoch_options){0}); }

static inline tslab_epoch open_child(tslab_epoch parent) {
  return open_with(&(tslab_epoch_options){.parent = parent});
}

static inline struct tsl_epoch *at(tslab_epoch id) { return tsl_epoch_at(tsl_epoch_slot(id)); }

// Ends an epoch that has neither heaps nor large blocks.
static inline void end(tslab_epoch id) {
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_CLOSED), 0);
  tsl_epoch_drain(tsl_epoch_slot(id), 1);
}
