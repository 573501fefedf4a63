#include "observe/census.h"

#include "base/bits.h"
#include "heap/remote.h"
#include "memory/growth.h"
#include "memory/record.h"
#include "memory/unit_cache.h"
#include "os/os.h"
#include "state/bin.h"
#include "state/heap.h"

// Walks where blocks move meanwhile, and the time after which no other one begins.
enum { MOST_WALKS = 3, MOST_MS = 20 };

struct hot {
  size_t objects, bytes;
};

// What the walk adds up.
struct walk {
  struct tsl_census *census;
  size_t small_objects;   // blocks of slabs and cells that are live or hot
  size_t small_bytes;     // of these
  size_t small_resident;  // of slabs and cells
  size_t large_objects;
  size_t large_resident;
};

static void add_small(struct walk *walk, size_t objects, size_t bytes) {
  walk->small_objects += objects;
  walk->small_bytes += objects * bytes;
}

static void count_cells(tsl_unit unit, struct walk *walk) {
  uintptr_t start = tsl_unit_address(unit);
  const uint8_t *granule = tsl_granule_at(start);
  for (size_t i = 0; i < TSL_UNIT_BYTES >> TSL_GRANULE_LOG2; i++) {
    unsigned class = tsl_granule_live(tsl_load_relaxed(&granule[i]));
    if (class < TSL_CLASSES) add_small(walk, 1, tsl_sizeclasses[class].bytes);
  }
}

// Counts the blocks of a slab that are neither free nor freed by other threads: live and hot ones.
static void count_slab(const struct tsl_slab *slab, struct walk *walk) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  size_t objects = 0;
  for (unsigned word = 0; word * 64 < sizeclass->capacity; word++) {
    uint64_t free = tsl_slab_free_word(slab, word);
    objects += tsl_bit_count(~free & tsl_low_bits(sizeclass->capacity - word * 64));
  }
  add_small(walk, objects, sizeclass->bytes);
}

// Counts the block, slab or unit of cells that the unit is part of. Returns the units from here to
// its end. A slab that was opened after the walk passed its first unit is not counted: its record
// and its memory begin there.
static size_t count_owner(tsl_unit unit, unsigned code, struct walk *walk) {
  void *start = (void *)tsl_unit_address(unit);
  if (code == TSL_CODE_LARGE) {
    size_t bytes = tsl_span_at(unit)->bytes;
    walk->large_objects++;
    walk->census->large_bytes += bytes;
    walk->large_resident += tsl_os_resident(start, bytes);
    return tsl_span_at(unit)->units;
  }
  unsigned units = tsl_sizeclasses[tsl_code_class(code)].units;
  unsigned passed = unit & (units - 1);
  if (passed != 0) return units - passed;
  walk->small_resident += tsl_os_resident(start, units * TSL_UNIT_BYTES);
  if (tsl_code_is_cell(code)) {
    count_cells(unit, walk);
  } else {
    count_slab(tsl_slab_at(unit), walk);
  }
  return units;
}

static void count_units(struct walk *walk) {
  size_t end = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  for (size_t unit = tsl_region.first_unit; unit < end;) {
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
    size_t units = entry == 0 ? 1 : count_owner((tsl_unit)unit, tsl_entry_code(entry), walk);
    unit += units == 0 ? 1 : units;
  }
}

static struct hot count_hot(void) {
  struct hot all = {0, 0};
  for (uint32_t number = tsl_load_relaxed(&tsl_region.last_heap); number != 0; number--) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    if (!tsl_heap_is_ready(heap) || !tsl_heap_has_store(heap)) continue;
    for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
      size_t hot = tsl_heap_hot_blocks(heap, class), bytes = tsl_sizeclasses[class].bytes;
      if (class < TSL_GATHERS && tsl_heap_is_home(heap))
        hot += tsl_remote_waiting(heap->home, class);
      all.objects += hot;
      all.bytes += hot * bytes;
    }
  }
  return all;
}

static size_t less(size_t from, size_t what) { return from > what ? from - what : 0; }

// There may be more hot blocks than count_slab saw, when slabs were opened meanwhile.
static void count_live(const struct walk *walk, struct hot hot) {
  struct tsl_census *census = walk->census;
  census->hot_bytes = hot.bytes;
  census->live_objects = walk->large_objects + less(walk->small_objects, hot.objects);
  census->live_bytes = census->large_bytes + less(walk->small_bytes, hot.bytes);
}

static size_t cached_units(void) {
  size_t units = tsl_unit_cache_units();
  for (uint32_t number = tsl_load_relaxed(&tsl_region.last_heap); number != 0; number--) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    if (!tsl_heap_is_ready(heap) || !tsl_heap_is_home(heap)) continue;
    units += tsl_load_relaxed(&heap->home->unit_count);
  }
  return units;
}

static void add_resident(uintptr_t start, size_t bytes, void *total) {
  *(size_t *)total += tsl_os_resident((void *)start, bytes);
}

// Divides the resident bytes among live, hot, free, cached and dirty memory.
static void settle(const struct walk *walk) {
  struct tsl_census *census = walk->census;
  size_t small = census->live_bytes - census->large_bytes + census->hot_bytes;
  size_t all = 0, owned = walk->small_resident + walk->large_resident;
  tsl_region_each_run(add_resident, &all);
  size_t nobodys = less(all, owned), cached = cached_units() << TSL_UNIT_LOG2;
  census->free_bytes = less(walk->small_resident, small);
  census->untouched_bytes = less(small, walk->small_resident);
  census->untouched_bytes += census->large_bytes - walk->large_resident;
  census->cached_bytes = cached < nobodys ? cached : nobodys;
  census->dirty_bytes = nobodys - census->cached_bytes;
  census->resident_bytes = owned + nobodys + census->metadata_bytes;
}

// False when blocks were taken to their slabs, or from there, meanwhile: some may be missed, and
// some counted twice.
static bool take(struct tsl_census *census) {
  struct walk walk = {.census = census};
  struct hot before = count_hot();
  tsl_region_each_part(add_resident, &census->metadata_bytes);
  count_units(&walk);
  struct hot hot = count_hot();
  count_live(&walk, hot);
  settle(&walk);
  return hot.objects == before.objects && hot.bytes == before.bytes;
}

void tsl_census_take(struct tsl_census *census) {
  uint64_t end_ms = tsl_os_now_ms() + MOST_MS;
  bool is_exact = false;
  *census = (struct tsl_census){0};
  if (tsl_region.base == 0) return;
  for (unsigned walks = 0; walks < MOST_WALKS && !is_exact && tsl_os_now_ms() <= end_ms; walks++) {
    *census = (struct tsl_census){0};
    is_exact = take(census);
  }
}
