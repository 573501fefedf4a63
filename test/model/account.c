#include "state/epoch.h"

#include <stddef.h>
#include <string.h>

#include "claim.h"
#include "heap/home_units.h"
#include "heap/rest.h"
#include "heap/warm.h"
#include "memory/kept.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "model.h"
#include "state/heap.h"
#include "step.h"
#include "upkeep/collect.h"

enum { MOST_UNITS = 1024, MOST_SLOTS = 64, MOST_HEAPS = 64 };

static void each_home(void (*visit)(struct tsl_home *)) {
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    if (tsl_heap_is_home(tsl_heap_at(number))) claim_visit(tsl_home_at(number), visit);
  }
}

static void give_cache(struct tsl_home *home) { tsl_home_units_trim(home, 0); }

// What one has of another's goes there first.
static void collect_homes(void) {
  each_home(tsl_home_rest_all);
  each_home(tsl_home_collect);
  each_home(give_cache);
}

static bool is_free(size_t unit) {
  const struct tsl_segment *segment = tsl_segment_at(unit / TSL_SEGMENT_UNITS);
  size_t bit = unit % TSL_SEGMENT_UNITS;
  return segment->free[bit / 64] >> (bit % 64) & 1;
}

// Heaps have given their caches to all threads'.
static void account_units(void) {
  uint8_t places[MOST_UNITS] = {0};
  for (tsl_unit unit; (unit = tsl_unit_cache_take()) != 0;) places[unit]++;
  for (size_t unit = tsl_region.first_unit; unit < tsl_region.units; unit++) {
    places[unit] += is_free(unit);
    if (*tsl_map_entry(unit) != 0) model_fail("unit %zu is still in use", unit);
    if (places[unit] == 0) model_fail("unit %zu is lost", unit);
    if (places[unit] != 1) model_fail("unit %zu was given back twice", unit);
  }
}

static void account_epoch(uint32_t slot, unsigned places) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  bool never_opened = epoch->word == 0;
  if (!never_opened && tsl_epoch_state(epoch->word) != TSL_EPOCH_FREE)
    model_fail("epoch %u did not retire: undrained %u", slot, epoch->undrained);
  if (epoch->undrained != 0) model_fail("epoch %u: undrained %u", slot, epoch->undrained);
  if (epoch->held_bytes != 0) model_fail("epoch %u holds %zu bytes", slot, epoch->held_bytes);
  if (epoch->children != 0) model_fail("epoch %u has children", slot);
  if (epoch->large != 0 || epoch->large_blocks != 0) model_fail("epoch %u has large blocks", slot);
  if (places != 1) model_fail("epoch %u retired %u times", slot, places);
}

static void account_epochs(void) {
  uint8_t places[MOST_SLOTS] = {0};
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    if (!tsl_heap_is_home(heap)) continue;
    for (uint32_t i = 0; i < heap->home->slot_count; i++) places[heap->home->own->slots[i]]++;
  }
  for (uint32_t slot = 1; slot <= tsl_region.last_epoch; slot++)
    if (!tsl_epoch_at(slot)->is_shared) account_epoch(slot, places[slot]);
}

// PL2: it is open, and once all was collected it holds nothing.
static void account_shared(void) {
  for (uint32_t slot = 1; slot <= tsl_region.last_epoch; slot++) {
    const struct tsl_epoch *epoch = tsl_epoch_at(slot);
    if (!epoch->is_shared) continue;
    if (tsl_epoch_state(epoch->word) != TSL_EPOCH_OPEN) model_fail("epoch %u has ended", slot);
    if (epoch->held_bytes != 0) model_fail("epoch %u holds %zu bytes", slot, epoch->held_bytes);
  }
}

static void count_parts(uint32_t number, const struct tsl_home *home, uint8_t *places) {
  for (; number != 0; number = tsl_part_at(number)->spare_next) {
    if (tsl_heap_at(number)->home != home) model_fail("part %u came to another home", number);
    if (++places[number] > 1) model_fail("part %u came home twice", number);
  }
}

static void account_part(const struct tsl_heap *part, unsigned places) {
  if (places == 0) model_fail("part %u did not come home", part->number);
  if (part->depth != 0) model_fail("part %u: depth %u", part->number, part->depth);
  if (part->cell_count != 0 || part->slab_count != 0 || part->cells != 0 || part->slabs != 0)
    model_fail("part %u is not empty", part->number);
  if ((uint32_t)part->ready != 0)
    model_fail("part %u: slab %u is still ready", part->number, (uint32_t)part->ready);
}

static void account_parts(void) {
  uint8_t places[MOST_HEAPS] = {0};
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    if (!tsl_heap_is_home(heap)) continue;
    count_parts(heap->home->spare, heap->home, places);
    count_parts(heap->home->returned, heap->home, places);
  }
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    if (tsl_heap_is_home(heap) || tsl_epoch_at(heap->epoch)->is_shared) continue;
    account_part(heap, places[number]);
  }
}

static void end_warm(struct tsl_home *home) {
  if (!tsl_warm_valid(home)) model_fail("a warm part of home %u is not whole", home->heap.number);
  tsl_warm_drop(home);
}

// KE1
static void account_kept(void) {
  size_t units = tsl_region.has_kept == 0 ? 0 : tsl_region.units;
  for (size_t unit = tsl_region.first_unit; unit < units; unit++)
    if (tsl_kept_any(tsl_unit_address(unit), TSL_UNIT_BYTES)) model_fail("a block is kept");
}

void model_account(void) {
  each_home(end_warm);
  account_epochs();
  account_parts();
  collect_homes();
  account_shared();
  account_units();
  account_kept();
}

// Whether there is something to hold may be asked of any.
static const char *misplaced_in_slab(uintptr_t address, enum model_op op) {
  size_t offset = address - tsl_region.records, unit = offset / TSL_RECORD_BYTES;
  if (op == MODEL_LOAD && offset % TSL_RECORD_BYTES == offsetof(struct tsl_slab, left)) return NULL;
  if (offset % TSL_RECORD_BYTES >= TSL_RECORD_SLAB_BYTES || *tsl_map_entry(unit) != 0) return NULL;
  return "an operation on a slab that was given back";
}

static const char *misplaced_in_cell(uintptr_t address, enum model_op op) {
  size_t unit = (address - tsl_region.cells) / TSL_CELLS_BYTES;
  const struct tsl_cells *cells = tsl_cells_at(unit);
  uintptr_t remote = (uintptr_t)cells->remote;
  if (op != MODEL_CHANGE || address < remote || address >= remote + sizeof cells->remote)
    return NULL;
  return cells->cells[(address - remote) / sizeof(uint32_t)].epoch != 0
             ? NULL
             : "an operation on a cell that was given back";
}

const char *model_misplaced(uintptr_t address, int op) {
  if (address >= tsl_region.records && address < tsl_region.cells)
    return misplaced_in_slab(address, (enum model_op)op);
  uintptr_t cells_end = tsl_region.cells + tsl_region.limit_units * TSL_CELLS_BYTES;
  if (address >= tsl_region.cells && address < cells_end)
    return misplaced_in_cell(address, (enum model_op)op);
  return NULL;
}

static bool is_in_heap(uintptr_t address, size_t offset) {
  if (address < tsl_region.heaps || address >= tsl_region.stores) return false;
  return (address - tsl_region.heaps) % TSL_HEAP_BYTES == offset;
}

bool model_is_depth(uintptr_t address) {
  return is_in_heap(address, offsetof(struct tsl_heap, depth)) ||
         is_in_heap(address, offsetof(struct tsl_part, frees));
}

bool model_is_changing(uintptr_t address) {
  return is_in_heap(address, offsetof(struct tsl_home, changing));
}
