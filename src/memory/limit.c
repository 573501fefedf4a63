#include "memory/limit.h"

#include "base/bits.h"
#include "base/options.h"
#include "base/warn.h"
#include "memory/detention.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "os/cgroup.h"

enum {
  NEAR_SHARE_LOG2 = 3,   // of the limit, free: the limit is near
  SLACK_SHARE_LOG2 = 6,  // of the limit, idle, whatever is in use
  LEAST_SLACK_UNITS = 16,
  CGROUP_SHARE_LOG2 = 3,  // of the cgroup's limit, for what is not the allocator's
  NEAR_DELAY_MS = 5
};

static uint64_t cgroup_bytes;  // [remote] when it was read last; 0: none
static uint32_t pressed;       // [remote] 1 while memory is short

void tsl_limit_follow(void) {
  if (tsl_option(soft_limit) != TSL_SOFT_LIMIT_CGROUP) return;
  uint64_t bytes = tsl_cgroup_limit_bytes();
  if (bytes == 0 && tsl_option(verbose) != 0)
    tsl_warn("no cgroup of the process tells a limit of its memory: `soft_limit:cgroup` is none");
  tsl_store_relaxed(&cgroup_bytes, bytes - (bytes >> CGROUP_SHARE_LOG2));
}

uint64_t tsl_limit_bytes(void) {
  uint64_t bytes = tsl_option(soft_limit);
  return bytes == TSL_SOFT_LIMIT_CGROUP ? tsl_load_relaxed(&cgroup_bytes) : bytes;
}

static size_t limit_units(uint64_t bytes) { return bytes / (TSL_UNIT_BYTES + TSL_RECORD_BYTES); }

static size_t idle_units(void) { return tsl_units_dirty() + tsl_unit_cache_units(); }

// In use, the pages of those that are detained being nobody's. The counts are of different moments.
static size_t used_units(void) {
  size_t open = tsl_units_open();
  size_t others = tsl_units_free() + tsl_unit_cache_units() + tsl_detention_units();
  return open > others ? open - others : 0;
}

void tsl_limit_set_pressed(bool is_pressed) { tsl_store_relaxed(&pressed, (uint32_t)is_pressed); }

bool tsl_limit_is_near(void) {
  if (tsl_unlikely(tsl_load_relaxed(&pressed) != 0)) return true;
  uint64_t bytes = tsl_limit_bytes();
  if (tsl_likely(bytes == 0)) return false;
  return used_units() + idle_units() > limit_units(bytes - (bytes >> NEAR_SHARE_LOG2));
}

// LI1
size_t tsl_limit_excess(void) {
  uint64_t bytes = tsl_limit_bytes();
  if (tsl_likely(bytes == 0)) return 0;
  size_t limit = limit_units(bytes), used = used_units(), idle = idle_units();
  size_t slack = tsl_at_least(limit >> SLACK_SHARE_LOG2, LEAST_SLACK_UNITS);
  size_t allowed = tsl_at_least(limit > used ? limit - used : 0, slack);
  return idle <= allowed ? 0 : tsl_at_most(idle - allowed + slack / 2, idle);
}

uint64_t tsl_limit_delay_ms(void) {
  uint64_t delay_ms = tsl_option(purge_delay_ms);
  return delay_ms > NEAR_DELAY_MS && tsl_limit_is_near() ? NEAR_DELAY_MS : delay_ms;
}
