#include "epoch/home_units.h"

#include "base/options.h"
#include "memory/unit_cache.h"
#include "memory/units.h"

tsl_unit tsl_home_units_take(struct tsl_heap *home, unsigned count) {
  bool clean;
  if (count > 1) return tsl_units_take(count, count, &clean);
  if (home->unit_count != 0) {
    tsl_unit cached = home->store->units[--home->unit_count];
    if (home->unit_count < home->unit_low) home->unit_low = home->unit_count;
    return cached;
  }
  tsl_unit unit = tsl_unit_cache_take();
  return unit != 0 ? unit : tsl_units_take(1, 1, &clean);
}

static bool keep_unit(tsl_unit unit) {
  struct tsl_heap *home = tsl_heap_current->home;
  if (home->unit_count >= (uint32_t)tsl_option(cache_units)) return false;
  uint8_t inside = home->inside;
  tsl_store_relaxed(&home->inside, 1);
  home->store->units[home->unit_count++] = unit;
  tsl_store_relaxed(&home->inside, inside);
  return true;
}

bool tsl_home_units_give(tsl_unit first, unsigned count) {
  if (count == 1 && keep_unit(first)) return false;
  if (count == 1) {
    tsl_unit_cache_give(first);
  } else {
    tsl_units_give(first, count);
  }
  return true;
}

void tsl_home_units_trim(struct tsl_heap *home, uint32_t keep) {
  if (home == &tsl_heap_empty) return;
  while (home->unit_count > keep) tsl_unit_cache_give(home->store->units[--home->unit_count]);
  home->unit_low = home->unit_count;
}
