#include "heap/home_units.h"

#include "base/options.h"
#include "memory/limit.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "state/change.h"
#include "state/owner.h"

// What is taken counts towards the soft limit: idle memory makes room for it.
static tsl_unit fresh_units_take(struct tsl_home *home, unsigned count) {
  bool clean;
  tsl_unit first = tsl_units_take(count, count, &clean);
  if (first != 0) *(clean ? &home->own->taken.fresh : &home->own->taken.reused) += count;
  tsl_purge_for_limit(count);
  return first;
}

tsl_unit tsl_home_units_take(struct tsl_home *home, unsigned count) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  if (count > 1) return fresh_units_take(home, count);  // caches hold single units
  if (home->unit_count != 0) {
    tsl_unit cached = home->own->units[--home->unit_count];
    // What the cache never went below is what the thread can do without (trim_unused).
    if (home->unit_count < home->unit_low) home->unit_low = home->unit_count;
    home->own->taken.kept++;
    return cached;
  }
  tsl_unit unit = tsl_unit_cache_take();
  if (unit == 0) return fresh_units_take(home, 1);
  home->own->taken.shared++;
  return unit;
}

// C2: count and list change together. Near the soft limit idle units go where others find them.
static bool keep_unit(tsl_unit unit) {
  struct tsl_home *home = tsl_heap_current->home;
  if (home == &tsl_home_empty || tsl_limit_is_near()) return false;
  struct tsl_change change = tsl_change_begin(home);
  bool has_room = home->unit_count < (uint32_t)tsl_option(cache_units);
  if (has_room) home->own->units[home->unit_count++] = unit;
  tsl_change_end(change);
  return has_room;
}

// Whether pages of them went back while they were in use; not any more from then on.
static bool take_holed(tsl_unit first) {
  struct tsl_span *span = tsl_span_at(first);
  if (tsl_likely(tsl_load_relaxed(&span->holed) == 0)) return false;
  tsl_store_relaxed(&span->holed, 0);
  return true;
}

bool tsl_home_units_give(tsl_unit first, unsigned count) {
  bool is_holed = take_holed(first);
  bool goes_to_cache = count == 1 && !is_holed;  // a holed one is taken last
  if (goes_to_cache && keep_unit(first)) return false;
  if (goes_to_cache) {
    tsl_unit_cache_give(first);
  } else {
    tsl_units_give(first, count);
  }
  tsl_purge_for_limit(count);
  return true;
}

static void give_beyond(struct tsl_home *home, uint32_t keep) {
  uint32_t count = home->unit_count;
  while (count > keep) tsl_unit_cache_give(home->own->units[--count]);
  tsl_store_relaxed(&home->unit_count, count);
  home->unit_low = count;
}

void tsl_home_units_trim(struct tsl_home *home, uint32_t keep) {
  struct tsl_change change = tsl_change_begin(home);
  if (home != &tsl_home_empty) give_beyond(home, keep);
  tsl_change_end(change);
}

void tsl_home_units_trim_unused(struct tsl_home *home) {
  struct tsl_change change = tsl_change_begin(home);
  give_beyond(home, home->unit_count - home->unit_low);
  tsl_change_end(change);
}

void tsl_home_units_tend(struct tsl_home *home) { give_beyond(home, 0); }
