#include "memory/region.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/lock.h"
#include "base/options.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "os/os.h"

enum {
  SMALLEST_RESERVE_LOG2 = 24,
  COMMIT_STEP_BYTES = 65536,
  HEAPS_SHARE_LOG2 = 5,
  EPOCHS_PER_SHARE = 4,
  MAP_ENTRY_LOG2 = 2,
  HUGE_UNITS = 64
};

struct tsl_region tsl_region;

static struct tsl_lock grow_lock;
static uintptr_t map_end;       // [lock:grow] the map is committed up to here
static uintptr_t records_end;   // [lock:grow]
static uintptr_t cells_end;     // [lock:grow]
static uintptr_t granules_end;  // [lock:grow]
static uintptr_t segments_end;  // [lock:grow]
static uintptr_t heaps_end;     // [lock:grow]
static uintptr_t stores_end;    // [lock:grow]
static uintptr_t epochs_end;    // [lock:grow]
static size_t committed_units;  // [lock:grow] heap units committed, counted from base
static bool huge_everywhere;    // [const]

static const char region_name[] = "tslab";  // in /proc/PID/maps

// The least power of two that is not below n.
static size_t power_of_two_from(size_t n) { return (size_t)2 << tsl_highest_bit(n - 1); }

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

// A place for `count` elements behind the others.
static uintptr_t lay_out(uintptr_t *end, size_t count, size_t bytes) {
  uintptr_t at = *end;
  *end += tsl_round_up(count * bytes, TSL_UNIT_BYTES);
  return at;
}

// Lays the parts out one behind the other; sizes follow from the number of units.
static void region_lay_out(uintptr_t base, size_t bytes) {
  size_t units = bytes >> TSL_UNIT_LOG2, share = bytes >> HEAPS_SHARE_LOG2;
  uintptr_t end = base + tsl_round_up(units * sizeof(uint32_t), TSL_UNIT_BYTES);
  tsl_region.limit_heaps = at_most(share / (TSL_HEAP_BYTES + TSL_STORE_BYTES), TSL_MOST_HEAPS);
  tsl_region.limit_epochs = at_most(share / TSL_EPOCH_BYTES / EPOCHS_PER_SHARE, TSL_MOST_EPOCHS);
  tsl_region.records = lay_out(&end, units, TSL_RECORD_BYTES);
  tsl_region.cells = lay_out(&end, units, TSL_CELLS_BYTES);
  tsl_region.granules = lay_out(&end, units, TSL_GRANULES_BYTES) - (base >> TSL_GRANULE_LOG2);
  tsl_region.segments =
      lay_out(&end, tsl_divide_up(units, TSL_SEGMENT_UNITS), sizeof(struct tsl_segment));
  tsl_region.heaps = lay_out(&end, tsl_region.limit_heaps, TSL_HEAP_BYTES);
  tsl_region.stores = lay_out(&end, tsl_region.limit_heaps, TSL_STORE_BYTES);
  tsl_region.epochs = lay_out(&end, tsl_region.limit_epochs, TSL_EPOCH_BYTES);
  tsl_region.first_unit = (end - base) >> TSL_UNIT_LOG2;
  tsl_region.span_bytes = power_of_two_from(bytes);
  tsl_region.limit_units = units;
  tsl_region.base = base;
}

static size_t region_wanted_bytes(void) {
  size_t wanted = (size_t)tsl_option(reserve), decent = tsl_os_reserve_limit_bytes();
  return tsl_round_down(wanted < decent ? wanted : decent, TSL_UNIT_BYTES);
}

// Commits an array up to (at least) `wanted`; `*end` tells how far it is committed already.
static bool commit_up_to(uintptr_t *end, uintptr_t wanted, size_t step) {
  wanted = tsl_round_up(wanted, step);
  if (wanted <= *end) return true;
  if (!tsl_os_commit((void *)*end, wanted - *end)) return false;
  *end = wanted;
  return true;
}

// The elements of units below the first one are never used.
static uintptr_t first_element(uintptr_t array, size_t index, size_t bytes) {
  return tsl_round_down(array + index * bytes, tsl_os_page_bytes());
}

static uintptr_t granules_of(size_t unit) {
  return (uintptr_t)tsl_granule_at(tsl_unit_address(unit));
}

static uintptr_t granules_start(void) {
  return tsl_round_down(granules_of(tsl_region.first_unit), tsl_os_page_bytes());
}

static uintptr_t segments_start(void) {
  return first_element(tsl_region.segments, tsl_region.first_unit / TSL_SEGMENT_UNITS,
                       sizeof(struct tsl_segment));
}

static void arrays_init(void) {
  size_t first = tsl_region.first_unit;
  map_end = first_element(tsl_region.base, first, sizeof(uint32_t));
  records_end = first_element(tsl_region.records, first, TSL_RECORD_BYTES);
  cells_end = first_element(tsl_region.cells, first, TSL_CELLS_BYTES);
  granules_end = granules_start();
  segments_end = segments_start();
  heaps_end = tsl_region.heaps;
  stores_end = tsl_region.stores;
  epochs_end = tsl_region.epochs;
}

bool tsl_region_init(void) {
  void *base = NULL;
  size_t bytes = region_wanted_bytes();
  for (; bytes >> SMALLEST_RESERVE_LOG2 != 0; bytes = tsl_round_down(bytes / 2, TSL_UNIT_BYTES)) {
    base = tsl_os_reserve(bytes, power_of_two_from(bytes));
    if (base != NULL) break;
  }
  if (base == NULL) return false;
  size_t map_bytes = tsl_round_up(bytes >> TSL_UNIT_LOG2 << MAP_ENTRY_LOG2, tsl_os_page_bytes());
  if (!tsl_os_make_readable(base, map_bytes)) {
    tsl_os_unreserve(base, bytes);
    return false;
  }
  region_lay_out((uintptr_t)base, bytes);
  arrays_init();
  committed_units = tsl_region.first_unit;
  if (!commit_up_to(&epochs_end, tsl_region.epochs + TSL_EPOCH_BYTES, COMMIT_STEP_BYTES)) {
    tsl_os_unreserve(base, bytes);
    return false;
  }
  huge_everywhere = tsl_option(thp) == TSL_THP_ALWAYS;
  tsl_os_name(base, bytes, region_name);
  tsl_os_advise_huge(base, bytes, huge_everywhere);
  return true;
}

static bool region_commit(size_t units) {
  size_t page = tsl_os_page_bytes();
  size_t segments = tsl_divide_up(units, TSL_SEGMENT_UNITS);
  if (!commit_up_to(&map_end, tsl_region.base + units * sizeof(uint32_t), COMMIT_STEP_BYTES) ||
      !commit_up_to(&records_end, tsl_region.records + units * TSL_RECORD_BYTES, page) ||
      !commit_up_to(&cells_end, tsl_region.cells + units * TSL_CELLS_BYTES, page) ||
      !commit_up_to(&granules_end, granules_of(units), page) ||
      !commit_up_to(&segments_end, tsl_region.segments + segments * sizeof(struct tsl_segment),
                    page)) {
    return false;
  }
  void *start = (void *)tsl_unit_address(committed_units);
  return tsl_os_commit(start, (units - committed_units) << TSL_UNIT_LOG2);
}

// Where the step of growth that a unit lies in begins.
static size_t step_of(size_t unit) { return tsl_round_down(unit, TSL_GROWTH_UNITS); }

static uint32_t huge_bit(size_t unit) {
  return (uint32_t)1 << unit % TSL_SEGMENT_UNITS / TSL_GROWTH_UNITS;
}

static void region_advise(size_t first, size_t end, bool huge) {
  tsl_os_advise_huge((void *)tsl_unit_address(first), (end - first) << TSL_UNIT_LOG2, huge);
}

static void region_make_huge(size_t first, size_t end) {
  region_advise(first, end, true);
  for (size_t step = step_of(first); step < end; step += TSL_GROWTH_UNITS)
    tsl_or_relaxed(&tsl_segment_at(step / TSL_SEGMENT_UNITS)->huge, huge_bit(step));
}

bool tsl_region_renew(tsl_unit first, size_t units) {
  void *start = (void *)tsl_unit_address(first);
  size_t end = first + units;
  if (!tsl_os_renew(start, units << TSL_UNIT_LOG2)) return false;
  tsl_os_name(start, units << TSL_UNIT_LOG2, region_name);
  for (size_t at = first, next; at < end; at = next) {
    next = at_most(step_of(at) + TSL_GROWTH_UNITS, end);
    uint32_t huge = tsl_load_relaxed(&tsl_segment_at(at / TSL_SEGMENT_UNITS)->huge);
    region_advise(at, next, huge_everywhere || (huge & huge_bit(at)) != 0);
  }
  return true;
}

// The newly committed units [first, end) become free, segment by segment.
static void region_open(size_t first, size_t end) {
  while (first < end) {
    size_t next = tsl_round_up(first + 1, TSL_SEGMENT_UNITS);
    if (next > end) next = end;
    tsl_segment_open(first / TSL_SEGMENT_UNITS, first % TSL_SEGMENT_UNITS, next - first);
    first = next;
  }
}

// A large want is committed in one call, so that the system can refuse what it does not have.
static bool region_grow_locked(size_t wanted_units) {
  size_t first = committed_units, most = tsl_region.limit_units - first;
  if (most == 0) return false;
  size_t end = first + (wanted_units < most ? wanted_units : most);
  end = tsl_round_up(end, TSL_GROWTH_UNITS);
  if (end > tsl_region.limit_units) end = tsl_region.limit_units;
  if (!region_commit(end)) return false;
  if (wanted_units >= HUGE_UNITS && tsl_option(thp) == TSL_THP_AUTO) region_make_huge(first, end);
  committed_units = end;
  tsl_store_release(&tsl_region.units, end);  // pairs: region-grow
  region_open(first, end);
  return true;
}

bool tsl_region_grow(size_t wanted_units) {
  tsl_lock_acquire(&grow_lock);
  bool grown = region_grow_locked(wanted_units);
  tsl_lock_release(&grow_lock);
  return grown;
}

static uint32_t region_add_heap_locked(void) {
  uint32_t number = tsl_region.last_heap + 1;
  if (number >= tsl_region.limit_heaps) return 0;
  uintptr_t end = tsl_region.heaps + (number + (uintptr_t)1) * TSL_HEAP_BYTES;
  uintptr_t store_end = tsl_region.stores + (number + (uintptr_t)1) * TSL_STORE_BYTES;
  if (!commit_up_to(&heaps_end, end, COMMIT_STEP_BYTES)) return 0;
  if (!commit_up_to(&stores_end, store_end, COMMIT_STEP_BYTES)) return 0;
  tsl_store_relaxed(&tsl_region.last_heap, number);
  return number;
}

static uint32_t region_add_epoch_locked(void) {
  uint32_t slot = tsl_region.last_epoch + 1;
  if (slot >= tsl_region.limit_epochs) return 0;
  uintptr_t end = tsl_region.epochs + (slot + (uintptr_t)1) * TSL_EPOCH_BYTES;
  if (!commit_up_to(&epochs_end, end, COMMIT_STEP_BYTES)) return 0;
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

void tsl_region_each_part(void (*visit)(uintptr_t start, size_t bytes, void *context),
                          void *context) {
  tsl_lock_acquire(&grow_lock);
  size_t first = tsl_region.first_unit;
  const struct {
    uintptr_t start, end;
  } parts[] = {
      {first_element(tsl_region.base, first, sizeof(uint32_t)), map_end},
      {first_element(tsl_region.records, first, TSL_RECORD_BYTES), records_end},
      {first_element(tsl_region.cells, first, TSL_CELLS_BYTES), cells_end},
      {granules_start(), granules_end},
      {segments_start(), segments_end},
      {tsl_region.heaps, heaps_end},
      {tsl_region.stores, stores_end},
      {tsl_region.epochs, epochs_end},
  };
  tsl_lock_release(&grow_lock);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (parts[i].end > parts[i].start)
      visit(parts[i].start, parts[i].end - parts[i].start, context);
  }
}

// Each number moves on after what it counts is there; units that were counted and not opened yet
// are nobody's for ever.
void tsl_region_after_fork(void) { tsl_lock_take_over(&grow_lock); }
