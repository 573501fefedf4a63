#include "memory/growth.h"

#include <string.h>

#include "base/bits.h"
#include "base/check.h"
#include "base/lock.h"
#include "base/options.h"
#include "memory/huge.h"
#include "memory/record.h"
#include "memory/region.h"
#include "memory/segment.h"
#include "memory/stretch.h"
#include "os/os.h"

enum {
  SMALLEST_RESERVE_LOG2 = 24,
  STEP_BYTES = 65536,
  HEAPS_SHARE_LOG2 = 5,
  EPOCHS_PER_SHARE = 4,
  MAP_ENTRY_LOG2 = 2,
  GROWTH_SHARE = 4,
  MOST_HOLES = 64
};

enum part { UNITS, MAP, RECORDS, CELLS, GRANULES, SEGMENTS, KEPT, HEAPS, STORES, EPOCHS, PARTS };

struct hole {
  size_t first, end;
};

static struct tsl_lock grow_lock = {.rank = TSL_RANK_GROW};
static struct tsl_stretch parts[PARTS] TSL_GUARDED_BY(grow_lock);  // [lock:grow]
static size_t next_unit TSL_GUARDED_BY(grow_lock);  // [lock:grow] the next step opens units here
static size_t spare_units
    TSL_GUARDED_BY(grow_lock);  // [lock:grow] a step beyond what is wanted opens at most so many
static struct hole holes[MOST_HOLES] TSL_GUARDED_BY(grow_lock);  // [lock:grow]
static size_t hole_count TSL_GUARDED_BY(grow_lock);              // [lock:grow]

static const char region_name[] = "tslab";  // in /proc/PID/maps

// Lays an array of `count` elements out below `*start`; returns its address.
static uintptr_t lay_out(uintptr_t *start, size_t count, size_t bytes) {
  *start -= tsl_round_up(count * bytes, TSL_UNIT_BYTES);
  return *start;
}

// Lays the arrays out from the end of the region to its beginning; sizes follow from the number of
// units.
static void region_lay_out(uintptr_t base, size_t bytes) {
  size_t units = bytes >> TSL_UNIT_LOG2, share = bytes >> HEAPS_SHARE_LOG2;
  uintptr_t at = base + bytes;
  tsl_region.limit_heaps = tsl_at_most(share / (TSL_HEAP_BYTES + TSL_STORE_BYTES), TSL_MOST_HEAPS);
  tsl_region.limit_epochs =
      tsl_at_most(share / TSL_EPOCH_BYTES / EPOCHS_PER_SHARE, TSL_MOST_EPOCHS);
  tsl_region.epochs = lay_out(&at, tsl_region.limit_epochs, TSL_EPOCH_BYTES);
  tsl_region.stores = lay_out(&at, tsl_region.limit_heaps, TSL_STORE_BYTES);
  tsl_region.heaps = lay_out(&at, tsl_region.limit_heaps, TSL_HEAP_BYTES);
  tsl_region.kept = lay_out(&at, units, TSL_KEPT_BYTES) - (base >> TSL_KEPT_LOG2);
  tsl_region.segments =
      lay_out(&at, tsl_divide_up(units, TSL_SEGMENT_UNITS), sizeof(struct tsl_segment));
  tsl_region.granules = lay_out(&at, units, TSL_GRANULES_BYTES) - (base >> TSL_GRANULE_LOG2);
  tsl_region.cells = lay_out(&at, units, TSL_CELLS_BYTES);
  tsl_region.records = lay_out(&at, units, TSL_RECORD_BYTES);
  tsl_region.limit_units = (at - base) >> TSL_UNIT_LOG2;
  tsl_region.first_unit = tsl_divide_up(units << MAP_ENTRY_LOG2, TSL_UNIT_BYTES);
  tsl_region.span_bytes = tsl_power_of_two_from(bytes);
  tsl_region.base = base;
}

// Where a part ends that has `units` units. Behind the units lies a page more that no block gets: a
// program may change the mapping of its blocks (mprotect, madvise), but that page stays as it was
// mapped, and can grow.
static uintptr_t part_end(enum part part, size_t units) {
  switch (part) {
    case UNITS:
      return tsl_unit_address(units) + (units < tsl_region.limit_units) * tsl_os_page_bytes();
    case MAP: return tsl_region.base + units * sizeof(uint32_t);
    case RECORDS: return tsl_region.records + units * TSL_RECORD_BYTES;
    case CELLS: return tsl_region.cells + units * TSL_CELLS_BYTES;
    case GRANULES: return (uintptr_t)tsl_granule_at(tsl_unit_address(units));
    case KEPT: return tsl_region.kept + (tsl_unit_address(units) >> TSL_KEPT_LOG2);
    default:
      return tsl_region.segments +
             tsl_divide_up(units, TSL_SEGMENT_UNITS) * sizeof(struct tsl_segment);
  }
}

// The elements of units below the first one are never used, but for those of the map.
static uintptr_t part_start(enum part part) {
  size_t first = tsl_region.first_unit;
  switch (part) {
    case UNITS: return tsl_unit_address(first);
    case MAP: return tsl_region.base;
    case SEGMENTS:
      return tsl_region.segments + first / TSL_SEGMENT_UNITS * sizeof(struct tsl_segment);
    case HEAPS: return tsl_region.heaps;
    case STORES: return tsl_region.stores;
    case EPOCHS: return tsl_region.epochs;
    default: return part_end(part, first);
  }
}

static bool part_reach(enum part part, uintptr_t end) TSL_REQUIRES(grow_lock) {
  return tsl_stretch_reach(&parts[part], end) == TSL_OS_MAPPED;
}

// Maps one more element of an array whose length does not follow from the number of units.
static bool part_extend(enum part part, uintptr_t end) TSL_REQUIRES(grow_lock) {
  return part_reach(part, tsl_round_up(end, STEP_BYTES));
}

// Maps the beginning of each array: an address that something else occupies must show now, while
// another place for the region can be tried.
static bool region_begin(bool is_reserved) TSL_REQUIRES(grow_lock) {
  for (enum part part = 0; part < PARTS; part++) {
    uintptr_t start = tsl_round_down(part_start(part), tsl_os_page_bytes());
    parts[part] = tsl_stretch_at(start, is_reserved);
  }
  next_unit = tsl_region.first_unit;
  spare_units = TSL_GROWTH_UNITS;
  for (enum part part = MAP; part <= SEGMENTS; part++) {
    if (!part_reach(part, part_end(part, next_unit + TSL_LEAST_GROWTH_UNITS))) return false;
  }
  for (enum part part = HEAPS; part <= EPOCHS; part++) {
    if (!part_extend(part, parts[part].start + 1)) return false;
  }
  return true;
}

// What counts upwards is still 0 then. It stays as it is: a thread without a heap may read it
// meanwhile.
static void region_forget(void) TSL_REQUIRES(grow_lock) {
  for (enum part part = 0; part < PARTS; part++)
    tsl_stretch_retreat(&parts[part], parts[part].start);
  memset(&tsl_region, 0, offsetof(struct tsl_region, units));
}

static bool region_plan(void) TSL_REQUIRES(grow_lock) {
  for (unsigned attempt = 0;; attempt++) {
    size_t bytes = tsl_round_down((size_t)tsl_option(reserve), TSL_UNIT_BYTES);
    uintptr_t base = tsl_os_place(&bytes, attempt);
    if (base == 0 || bytes >> SMALLEST_RESERVE_LOG2 == 0) return false;
    region_lay_out(base, bytes);
    if (region_begin(false)) return true;
    region_forget();
  }
}

static void *region_reserve(size_t *bytes) {
  void *base = NULL;
  *bytes = tsl_at_most((size_t)tsl_option(reserve), tsl_os_reserve_limit_bytes());
  for (; *bytes >> SMALLEST_RESERVE_LOG2 != 0 && base == NULL; *bytes /= 2) {
    *bytes = tsl_round_down(*bytes, TSL_UNIT_BYTES);
    base = tsl_os_reserve(*bytes, tsl_power_of_two_from(*bytes));
    if (base != NULL) break;
  }
  return base;
}

// Needs no lock: no other thread knows of the region yet.
bool tsl_region_init(void) TSL_NOT_ANALYSED {
  tsl_huge_init();
  if (region_plan()) return true;
  size_t bytes;
  void *base = region_reserve(&bytes);
  if (base == NULL) return false;
  region_lay_out((uintptr_t)base, bytes);
  if (!region_begin(true)) {
    region_forget();
    tsl_os_unreserve(base, bytes);
    return false;
  }
  tsl_os_name(base, bytes, region_name);
  tsl_os_advise_huge(base, bytes, tsl_huge_is_everywhere());
  return true;
}

// The last of the parts that follow the units.
static enum part last_of_units(void) { return tsl_region.has_kept != 0 ? KEPT : SEGMENTS; }

// R3: extends the units and all arrays that follow them, or none. The units come first because the
// system refuses them most often. Only units can go around what lies in their way; where it lies in
// an array's way, that counts as a refusal.
static enum tsl_os_mapped region_commit(size_t end) TSL_REQUIRES(grow_lock) {
  uintptr_t before[KEPT + 1];
  enum part last = last_of_units();
  enum tsl_os_mapped result = TSL_OS_MAPPED;
  for (enum part part = UNITS; part <= last; part++) before[part] = parts[part].end;
  for (enum part part = UNITS; part <= last && result == TSL_OS_MAPPED; part++) {
    result = tsl_stretch_reach(&parts[part], part_end(part, end));
    if (result == TSL_OS_OCCUPIED && part != UNITS) result = TSL_OS_REFUSED;
  }
  for (enum part part = UNITS; part <= last && result != TSL_OS_MAPPED; part++)
    tsl_stretch_retreat(&parts[part], before[part]);
  return result;
}

bool tsl_region_renew(tsl_unit first, size_t units) {
  void *start = (void *)tsl_unit_address(first);
  if (!tsl_os_renew(start, units << TSL_UNIT_LOG2)) return false;
  tsl_os_name(start, units << TSL_UNIT_LOG2, region_name);
  tsl_huge_renew(first, first + units);
  return true;
}

// Where the next step ends. The end is a multiple of TSL_LEAST_GROWTH_UNITS, unless the system
// refused steps of that size.
static size_t growth_end(size_t wanted_units) TSL_REQUIRES(grow_lock) {
  size_t open = next_unit - tsl_region.first_unit;
  size_t spare =
      tsl_at_most(tsl_at_least(open / GROWTH_SHARE, TSL_LEAST_GROWTH_UNITS), spare_units);
  size_t most = tsl_region.limit_units - next_unit, wanted = tsl_at_most(wanted_units, most);
  size_t end = next_unit + tsl_at_least(wanted, spare);
  end = tsl_round_up(end, tsl_at_most(spare_units, TSL_LEAST_GROWTH_UNITS));
  return tsl_at_most(end, tsl_region.limit_units);
}

// After a refusal: halves the reserve that a step opens beyond what is wanted. False when this
// attempt opened no reserve.
static bool growth_lower(size_t taken, size_t wanted) TSL_REQUIRES(grow_lock) {
  if (spare_units == 1 || taken <= wanted) return false;
  spare_units = wanted >= taken / 2 ? 1 : tsl_power_of_two_from(taken) / 4;
  return true;
}

// Something else is mapped in [next_unit, end): these units become a hole. A hole doubles each time
// it has to grow, so that a few attempts pass even a large mapping.
static bool growth_skip(size_t end) TSL_REQUIRES(grow_lock) {
  struct hole *last = hole_count == 0 ? NULL : &holes[hole_count - 1];
  if (last != NULL && last->end == next_unit) {
    end = tsl_at_most(end + (last->end - last->first), tsl_region.limit_units);
    last->end = end;
  } else if (hole_count < MOST_HOLES) {
    holes[hole_count] = (struct hole){next_unit, end};
    hole_count++;
  } else {
    return false;
  }
  next_unit = end;
  parts[UNITS] = tsl_stretch_at(tsl_unit_address(end), false);
  return true;
}

// The end of what the system gave, from next_unit on; 0 when it gave nothing.
static size_t region_extend(size_t wanted) TSL_REQUIRES(grow_lock) {
  while (next_unit < tsl_region.limit_units) {
    size_t end = growth_end(wanted);
    enum tsl_os_mapped result = region_commit(end);
    if (result == TSL_OS_MAPPED) return end;
    if (result == TSL_OS_REFUSED && !growth_lower(end - next_unit, wanted)) return 0;
    if (result == TSL_OS_OCCUPIED && !growth_skip(end)) return 0;
  }
  return 0;
}

static size_t units_in_holes(void) TSL_REQUIRES(grow_lock) {
  size_t units = 0;
  for (size_t i = 0; i < hole_count; i++) units += holes[i].end - holes[i].first;
  return units;
}

// The units [first, end) become free, segment by segment.
static void region_open(size_t first, size_t end) {
  while (first < end) {
    size_t next = tsl_round_up(first + 1, TSL_SEGMENT_UNITS);
    if (next > end) next = end;
    tsl_segment_open(first / TSL_SEGMENT_UNITS, first % TSL_SEGMENT_UNITS, next - first);
    first = next;
  }
}

// R1 to R3, under the lock.
static bool region_valid(void) TSL_REQUIRES(grow_lock) {
  if (tsl_region.base % tsl_region.span_bytes != 0) return false;
  if (next_unit > tsl_region.limit_units || tsl_region.units != next_unit) return false;
  for (enum part part = UNITS; part <= last_of_units(); part++)
    if (parts[part].end < part_end(part, next_unit)) return false;
  return hole_count <= MOST_HOLES && tsl_region.hole_units == units_in_holes();
}

// A large want is mapped in one call, so that the system can refuse it as a whole.
// R4: memory, then `units`, then the segments.
static bool region_grow_locked(size_t wanted_units) TSL_REQUIRES(grow_lock) {
  size_t end = region_extend(wanted_units), first = next_unit;
  if (end == 0) return false;
  spare_units = tsl_at_most(spare_units * 2, TSL_GROWTH_UNITS);
  next_unit = end;
  tsl_store_relaxed(&tsl_region.hole_units, units_in_holes());
  tsl_store_release(&tsl_region.units, end);  // pairs: region-grow
  tsl_invariant(region_valid());
  region_open(first, end);
  return true;
}

bool tsl_region_grow(size_t wanted_units) {
  tsl_lock_acquire(&grow_lock);
  bool grown = region_grow_locked(wanted_units);
  tsl_lock_release(&grow_lock);
  return grown;
}

static uint32_t region_add_heap_locked(void) TSL_REQUIRES(grow_lock) {
  uint32_t number = tsl_region.last_heap + 1;
  if (number >= tsl_region.limit_heaps) return 0;
  uintptr_t end = tsl_region.heaps + (number + (uintptr_t)1) * TSL_HEAP_BYTES;
  uintptr_t store_end = tsl_region.stores + (number + (uintptr_t)1) * TSL_STORE_BYTES;
  if (!part_extend(HEAPS, end) || !part_extend(STORES, store_end)) return 0;
  tsl_store_relaxed(&tsl_region.last_heap, number);
  return number;
}

static uint32_t region_add_epoch_locked(void) TSL_REQUIRES(grow_lock) {
  uint32_t slot = tsl_region.last_epoch + 1;
  if (slot >= tsl_region.limit_epochs) return 0;
  if (!part_extend(EPOCHS, tsl_region.epochs + (slot + (uintptr_t)1) * TSL_EPOCH_BYTES)) return 0;
  tsl_store_relaxed(&tsl_region.last_epoch, slot);
  return slot;
}

uint32_t tsl_region_add_heap(void) {
  tsl_lock_acquire(&grow_lock);
  uint32_t number = region_add_heap_locked();
  tsl_lock_release(&grow_lock);
  return number;
}

uint32_t tsl_region_add_epoch(void) {
  tsl_lock_acquire(&grow_lock);
  uint32_t slot = region_add_epoch_locked();
  tsl_lock_release(&grow_lock);
  return slot;
}

bool tsl_region_open_kept(void) {
  tsl_lock_acquire(&grow_lock);
  bool is_open = tsl_region.has_kept != 0 || part_reach(KEPT, part_end(KEPT, next_unit));
  if (is_open) tsl_store_release(&tsl_region.has_kept, 1);  // pairs: region-kept
  tsl_lock_release(&grow_lock);
  return is_open;
}

void tsl_region_each_part(void (*visit)(uintptr_t start, size_t bytes, void *context),
                          void *context) {
  struct tsl_stretch now[PARTS];
  tsl_lock_acquire(&grow_lock);
  memcpy(now, parts, sizeof now);
  tsl_lock_release(&grow_lock);
  for (enum part part = MAP; part < PARTS; part++) {
    if (now[part].end > now[part].start)
      visit(now[part].start, now[part].end - now[part].start, context);
  }
}

static void visit_units(size_t first, size_t end,
                        void (*visit)(uintptr_t start, size_t bytes, void *context),
                        void *context) {
  if (first < end) visit(tsl_unit_address(first), (end - first) << TSL_UNIT_LOG2, context);
}

void tsl_region_each_run(void (*visit)(uintptr_t start, size_t bytes, void *context),
                         void *context) {
  struct hole now[MOST_HOLES];
  tsl_lock_acquire(&grow_lock);
  size_t first = tsl_region.first_unit, end = tsl_region.units, count = hole_count;
  memcpy(now, holes, sizeof now);
  tsl_lock_release(&grow_lock);
  for (size_t i = 0; i < count && now[i].end <= end; i++) {
    visit_units(first, now[i].first, visit, context);
    first = now[i].end;
  }
  visit_units(first, end, visit, context);
}

// Each number is stored after what it counts is mapped. Units that were counted but not yet opened
// in their segment are lost. Whether the step under way had mapped units, or something else lies
// there, cannot be told: the next step goes around it as a hole.
void tsl_region_after_fork(void) TSL_NOT_ANALYSED {
  if (tsl_lock_take_over(&grow_lock)) parts[UNITS].begun = parts[UNITS].end;
}
