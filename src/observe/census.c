#include "observe/census.h"

#include "base/bits.h"
#include "epoch/heap.h"
#include "epoch/remote.h"
#include "memory/growth.h"
#include "memory/record.h"
#include "memory/unit_cache.h"
#include "os/os.h"

// What the walk adds up.
struct walk {
  struct tsl_census *census;
  size_t small_resident;  // of slabs and cells
  size_t large_resident;
};

static void add_live(struct tsl_census *census, size_t objects, size_t bytes) {
  census->live_objects += objects;
  census->live_bytes += objects * bytes;
}

static void count_cells(tsl_unit unit, struct tsl_census *census) {
  uintptr_t start = tsl_unit_address(unit);
  const uint8_t *granule = tsl_granule_at(start);
  for (size_t i = 0; i < TSL_UNIT_BYTES >> TSL_GRANULE_LOG2; i++) {
    unsigned class = tsl_granule_live(tsl_load_relaxed(&granule[i]));
    if (class < TSL_CLASSES) add_live(census, 1, tsl_sizeclasses[class].bytes);
  }
}

// Blocks neither free nor on their way there.
static void count_slab(const struct tsl_slab *slab, struct tsl_census *census) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  size_t objects = 0;
  for (unsigned word = 0; word * 64 < sizeclass->capacity; word++) {
    uint64_t free = tsl_slab_free_word(slab, word);
    objects += tsl_bit_count(~free & tsl_low_bits(sizeclass->capacity - word * 64));
  }
  add_live(census, objects, sizeclass->bytes);
}

// The block, slab or unit of cells that begins at the unit; returns its units.
static size_t count_owner(tsl_unit unit, unsigned code, struct walk *walk) {
  void *start = (void *)tsl_unit_address(unit);
  if (code == TSL_CODE_LARGE) {
    size_t bytes = tsl_span_at(unit)->bytes;
    add_live(walk->census, 1, bytes);
    walk->census->large_bytes += bytes;
    walk->large_resident += tsl_os_resident(start, bytes);
    return tsl_span_at(unit)->units;
  }
  unsigned units = tsl_sizeclasses[code / 2].units;
  walk->small_resident += tsl_os_resident(start, units * TSL_UNIT_BYTES);
  if (tsl_code_is_cell(code)) {
    count_cells(unit, walk->census);
  } else {
    count_slab(tsl_slab_at(unit), walk->census);
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

// Blocks at hand look live to count_slab.
static void count_hot(struct tsl_census *census) {
  for (uint32_t number = tsl_load_relaxed(&tsl_region.last_heap); number != 0; number--) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    uint32_t initialised = tsl_load_acquire(&heap->number);  // pairs: heap-init
    if (initialised == 0 || !tsl_heap_has_store(heap)) continue;
    for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
      size_t hot = tsl_heap_hot_blocks(heap, class), bytes = tsl_sizeclasses[class].bytes;
      if (class < TSL_GATHERS) hot += tsl_remote_waiting(heap, class);
      census->live_objects -= hot;
      census->live_bytes -= hot * bytes;
      census->hot_bytes += hot * bytes;
    }
  }
}

static size_t cached_units(void) {
  size_t units = tsl_unit_cache_units();
  for (uint32_t number = tsl_load_relaxed(&tsl_region.last_heap); number != 0; number--)
    units += tsl_load_relaxed(&tsl_heap_at(number)->unit_count);
  return units;
}

static void add_resident(uintptr_t start, size_t bytes, void *total) {
  *(size_t *)total += tsl_os_resident((void *)start, bytes);
}

// Shares what is resident out to who has it.
static void settle(const struct walk *walk) {
  struct tsl_census *census = walk->census;
  size_t small = census->live_bytes - census->large_bytes + census->hot_bytes;
  size_t all = 0, owned = walk->small_resident + walk->large_resident;
  tsl_region_each_run(add_resident, &all);
  size_t nobodys = all > owned ? all - owned : 0, cached = cached_units() << TSL_UNIT_LOG2;
  census->free_bytes = walk->small_resident > small ? walk->small_resident - small : 0;
  census->untouched_bytes = walk->small_resident < small ? small - walk->small_resident : 0;
  census->untouched_bytes += census->large_bytes - walk->large_resident;
  census->cached_bytes = cached < nobodys ? cached : nobodys;
  census->dirty_bytes = nobodys - census->cached_bytes;
  census->resident_bytes = owned + nobodys + census->metadata_bytes;
}

void tsl_census_take(struct tsl_census *census) {
  *census = (struct tsl_census){0};
  struct walk walk = {.census = census};
  if (tsl_region.base == 0) return;
  tsl_region_each_part(add_resident, &census->metadata_bytes);
  count_units(&walk);
  count_hot(census);
  settle(&walk);
}
