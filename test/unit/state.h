// state: the whole allocator at rest, checked from outside: every structure is valid, every unit
// has one owner, every cell one heap or none, and each epoch holds what it says.
#pragma once

#include "base/bits.h"
#include "base/options.h"
#include "epoch/inspect.h"
#include "heap/cells.h"
#include "heap/slabs.h"
#include "heap/valid.h"
#include "memory/detention.h"
#include "memory/kept.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "test.h"

// At rest there is no helper in the middle of a step.
static inline void state_end_helper(void) {
  uint64_t wanted = tsl_option(helper);
  tsl_store_relaxed(&tsl_options.helper, TSL_HELPER_NEVER);
  while (tsl_purge_has_helper()) usleep(1000);
  tsl_store_relaxed(&tsl_options.helper, wanted);
}

static inline void state_check_segments(void) {
  size_t dirty = 0, moved = 0, free = 0, open = tsl_divide_up(tsl_region.units, TSL_SEGMENT_UNITS);
  for (size_t i = tsl_region.first_unit / TSL_SEGMENT_UNITS; i < open; i++) {
    const struct tsl_segment *segment = tsl_segment_at(i);
    CHECK(tsl_segment_valid(segment));
    free += segment->free_units;
    CHECK_EQ(segment->lock.holder, 0);
    for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) dirty += tsl_bit_count(segment->dirty[w]);
    for (unsigned w = 0; w < TSL_SEGMENT_WORDS; w++) moved += tsl_bit_count(segment->moved[w]);
  }
  CHECK_EQ(dirty, tsl_units_dirty());
  CHECK_EQ(moved, tsl_segments_moved_units());
  CHECK_EQ(free, tsl_units_free());
}

static inline bool state_is_heap(uint32_t number) {
  return number >= 1 && number <= tsl_region.last_heap;
}

// What waits after its end is held by one more (poison.h).
static inline unsigned state_holds(uint32_t slot) { return tsl_epoch_waits(slot) ? 1 : 0; }

// S5: nobody is between two steps, so every bit that is neither free nor counted is still to come.
static inline void state_check_sealed(const struct tsl_slab *slab) {
  unsigned capacity = tsl_sizeclasses[slab->class].capacity, free = 0;
  CHECK(slab->sealed != 0);
  CHECK(slab->remote_summary == ~UINT64_C(0));
  for (unsigned w = 0; w * 64 < capacity; w++) {
    CHECK(slab->remote[w] == ~UINT64_C(0));
    free += tsl_bit_count(slab->free[w]);
  }
  CHECK(slab->left > 0 || slab->guarded);
  unsigned held = state_holds(tsl_span_at(tsl_slab_unit(slab))->epoch);
  CHECK_EQ((unsigned)slab->left + free, capacity + held);
}

// The bytes of a cell's granules: those before `used` say which blocks are live, the rest nothing.
static inline uint32_t state_live_granules(tsl_cell_number number, size_t used, size_t bytes) {
  const uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  uint32_t live = 0;
  for (size_t i = 0; i < bytes >> TSL_GRANULE_LOG2; i++) {
    unsigned class = granule[i] & ~(unsigned)(TSL_CELL_FREED | TSL_CELL_COUNTED);
    CHECK(class <= TSL_CLASSES && granule[i] != TSL_CELL_FREED);
    CHECK(i < used || granule[i] == 0);
    live += granule[i] != 0 && granule[i] < TSL_CELL_FREED;
  }
  return live;
}

// CE1, CE2: what is out of a cell is what its granules say.
static inline void state_check_cell(tsl_cell_number number, size_t bytes) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  const struct tsl_heap *heap = tsl_heap_at(cell->heap);
  bool newest = cell->heap != 0 && heap->cell_end != 0 && heap->cells == number;
  uint32_t remote = *tsl_cell_remote(number);
  size_t used = newest ? (heap->cell_next - heap->cell_start) >> TSL_GRANULE_LOG2 : cell->granules;
  uint32_t live = state_live_granules(number, used, bytes);
  CHECK(cell->heap == 0 || state_is_heap(cell->heap));
  if (cell->heap == 0) {
    live += state_holds(cell->epoch);
    CHECK(live != 0);
    CHECK_EQ(live, 0 - remote);
  } else {
    uint32_t kept =
        newest ? heap->cell_blocks - (uint32_t)heap->cell_freed : cell->blocks - cell->freed;
    CHECK_EQ(heap->epoch, cell->epoch);
    CHECK_EQ(live, kept - (remote - TSL_CELL_BIAS));
    CHECK(newest || tsl_cell_out(number) == live);
  }
}

// What a home heap's slab of cells hands out is a cell of a heap, or of an epoch, or hot. Returns
// how many cells belong to heaps.
static inline size_t state_check_cells(size_t unit, unsigned class) {
  size_t bytes = tsl_sizeclasses[class].bytes, owned = 0;
  const struct tsl_slab *slab = tsl_slab_at(unit);
  for (unsigned page = 0; page < TSL_UNIT_PAGES; page++) {
    tsl_cell_number number = (tsl_cell_number)unit * TSL_UNIT_PAGES + page;
    const struct tsl_cell *cell = tsl_cell_at(number);
    unsigned index = (unsigned)(page << TSL_CELL_PAGE_LOG2) / (unsigned)bytes;
    if (cell->epoch == 0 && cell->heap == 0) {
      CHECK(cell->blocks == 0 && cell->freed == 0 && cell->granules == 0);
      CHECK_EQ(state_live_granules(number, 0, (size_t)1 << TSL_CELL_PAGE_LOG2), 0);
      continue;
    }
    CHECK_EQ((size_t)index * bytes, (size_t)page << TSL_CELL_PAGE_LOG2);
    CHECK(((slab->free[0] | slab->remote[0]) >> index & 1) == 0);
    state_check_cell(number, bytes);
    owned += cell->heap != 0;
    page += (unsigned)(bytes >> TSL_CELL_PAGE_LOG2) - 1;
  }
  return owned;
}

// What the walk through the map found, to be compared with what heaps say.
struct state_found {
  size_t units;
  size_t cells;  // that belong to a heap
  size_t slabs;  // that belong to a heap
};

// The block or slab that begins here; returns its units, whose map entries are all checked.
static inline size_t state_check_owner(size_t unit, struct state_found *found) {
  uint32_t entry = *tsl_map_entry(unit), number = entry >> TSL_CODE_BITS;
  unsigned code = tsl_entry_code(entry);
  bool large = code == TSL_CODE_LARGE, sealed = number == TSL_HEAP_SEALED;
  CHECK(sealed ? !large && code < TSL_CODES : state_is_heap(number));
  CHECK(large || (code % 2 == 0 && code < TSL_CELL_CODES));
  size_t units = large ? tsl_span_at(unit)->units : tsl_sizeclasses[code / 2].units;
  CHECK(large || tsl_slab_at(unit)->class == code / 2);
  CHECK(large || sealed || tsl_slab_valid(tsl_slab_at(unit)));
  if (sealed) state_check_sealed(tsl_slab_at(unit));
  if (!large && !sealed) CHECK_EQ(tsl_span_at(unit)->epoch, tsl_heap_at(number)->epoch);
  if (!large && !sealed) found->slabs++;
  if (!large && code >= TSL_CODES) {
    CHECK(tsl_heap_is_home(tsl_heap_at(number)));
    found->cells += state_check_cells(unit, code / 2);
  }
  for (size_t i = 1; i < units; i++) CHECK_EQ(*tsl_map_entry(unit + i), large ? 0 : entry);
  return units;
}

static inline struct state_found state_find(void) {
  struct state_found found = {0};
  for (size_t unit = tsl_region.first_unit; unit < tsl_region.units;) {
    size_t units = *tsl_map_entry(unit) == 0 ? 0 : state_check_owner(unit, &found);
    found.units += units;
    unit += units == 0 ? 1 : units;
  }
  return found;
}

static inline size_t state_owned_units(void) { return state_find().units; }

static inline size_t state_cached_units(void) {
  size_t cached = tsl_unit_cache_units();
  for (uint32_t i = 1; i <= tsl_region.last_heap; i++)
    if (tsl_heap_is_home(tsl_heap_at(i))) cached += tsl_home_at(i)->unit_count;
  return cached;
}

// The list from the newest cell to the oldest, and back.
static inline void state_check_cell_list(const struct tsl_heap *heap) {
  uint32_t count = 0, pages = 0;
  tsl_cell_number newer = 0;
  for (tsl_cell_number at = heap->cells; at != 0; newer = at, at = tsl_cell_at(at)->older) {
    const struct tsl_cell *cell = tsl_cell_at(at);
    unsigned class = tsl_entry_code(*tsl_map_entry(at / TSL_UNIT_PAGES)) / 2;
    CHECK(tsl_is_cell(class));
    CHECK_EQ(cell->newer, newer);
    CHECK_EQ(cell->heap, heap->number);
    count++;
    pages += tsl_sizeclasses[class].bytes >> TSL_CELL_PAGE_LOG2;
  }
  CHECK_EQ(heap->cells_oldest, newer);
  CHECK_EQ(heap->cell_count, count);
  CHECK_EQ(heap->cell_pages, pages);
  CHECK(heap->cell_end == 0 || tsl_cell_address(heap->cells) == heap->cell_start);
}

// PA3
static inline uint32_t state_check_spares(const struct tsl_home *home, uint32_t number) {
  uint32_t count = 0;
  for (; number != 0; number = tsl_part_at(number)->spare_next, count++) {
    const struct tsl_heap *part = tsl_heap_at(number);
    CHECK(part->home == home && !tsl_heap_is_home(part));
    CHECK(part->cells == 0 && part->slabs == 0 && part->pending == 0 && !tsl_heap_has_store(part));
    CHECK_EQ((uint32_t)part->ready, 0);
    CHECK_EQ(tsl_part_at(number)->sealing, TSL_PART_SEALED);
    CHECK_EQ(part->depth, 0);
  }
  return count;
}

// HO3: a home knows all its parts.
static inline void state_check_family(const struct tsl_home *home) {
  uint32_t count = 0, parts = 0;
  for (uint32_t at = home->family; at != 0; at = tsl_part_at(at)->family_next, count++)
    CHECK(tsl_heap_at(at)->home == home);
  for (uint32_t i = 1; i <= tsl_region.last_heap; i++)
    parts += i != home->heap.number && tsl_heap_at(i)->home == home;
  CHECK_EQ(count, parts);
  uint32_t spare = state_check_spares(home, home->spare);
  spare += state_check_spares(home, home->returned);
  CHECK_LE(spare, parts);
}

static inline void state_check_heaps(const struct state_found *found) {
  size_t cells = 0, slabs = 0;
  for (uint32_t i = 1; i <= tsl_region.last_heap; i++) {
    const struct tsl_heap *heap = tsl_heap_at(i);
    if (heap->number == 0) continue;
    CHECK(tsl_heap_valid(heap));
    CHECK_EQ((uint32_t)(heap->ready >> 32), heap->life);
    state_check_cell_list(heap);
    if (tsl_heap_is_home(heap)) state_check_family(heap->home);
    cells += heap->cell_count;
    slabs += heap->slab_count;
  }
  CHECK_EQ(cells, found->cells);
  CHECK_EQ(slabs, found->slabs);
}

// What lies in the units of an epoch itself.
struct state_held {
  size_t bytes;
  uint32_t sealed;  // cells and slabs
  uint32_t large;   // blocks
};

static inline void state_hold(struct state_held *held, uint32_t slot, size_t bytes, bool sealed) {
  CHECK_LE(slot, tsl_region.last_epoch);
  held[slot].bytes += bytes;
  held[slot].sealed += sealed;
}

static inline void state_hold_cells(struct state_held *held, size_t unit, size_t bytes) {
  for (unsigned page = 0; page < TSL_UNIT_PAGES; page++) {
    const struct tsl_cell *cell = &tsl_cells_at(unit)->cells[page];
    if (cell->epoch != 0) state_hold(held, cell->epoch, bytes, cell->heap == 0);
  }
}

// Returns the units of what begins here.
static inline size_t state_hold_unit(struct state_held *held, size_t unit) {
  uint32_t entry = *tsl_map_entry(unit);
  unsigned code = tsl_entry_code(entry);
  const struct tsl_span *span = tsl_span_at(unit);
  if (entry == 0) return 1;
  if (code == TSL_CODE_LARGE) {
    state_hold(held, span->epoch, span->bytes, false);
    held[span->epoch].large++;
    return span->units;
  }
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[code / 2];
  if (code >= TSL_CODES) {
    state_hold_cells(held, unit, sizeclass->bytes);
  } else {
    bool sealed = entry >> TSL_CODE_BITS == TSL_HEAP_SEALED;
    state_hold(held, span->epoch, sizeclass->slab_bytes, sealed);
  }
  return sizeclass->units;
}

// One for each epoch's slot; to be freed.
static inline struct state_held *state_held(void) {
  struct state_held *held = calloc(tsl_region.last_epoch + (size_t)1, sizeof *held);
  CHECK(held != NULL);
  for (size_t unit = tsl_region.first_unit; unit < tsl_region.units;)
    unit += state_hold_unit(held, unit);
  return held;
}

// Neither retired nor never opened.
static inline bool state_epoch_is_live(uint32_t slot) {
  uint64_t word = tsl_epoch_at(slot)->word;
  return word >> TSL_EPOCH_STATE_BITS != 0 && tsl_epoch_state(word) != TSL_EPOCH_FREE;
}

// E3: an epoch holds what lies in its units and those of its descendants; a retired one, nothing.
static inline void state_check_epochs(void) {
  struct state_held *held = state_held();
  size_t *total = calloc(tsl_region.last_epoch + (size_t)1, sizeof *total);
  uint32_t *children = calloc(tsl_region.last_epoch + (size_t)1, sizeof *children);
  CHECK(total != NULL);
  CHECK(children != NULL);
  for (uint32_t slot = 1; slot <= tsl_region.last_epoch; slot++) {
    uint32_t at = state_epoch_is_live(slot) ? slot : 0;
    CHECK(at != 0 || held[slot].bytes == 0);
    if (at != 0) children[tsl_epoch_at(at)->parent]++;
    for (; at != 0; at = tsl_epoch_at(at)->parent) total[at] += held[slot].bytes;
  }
  for (uint32_t slot = 1; slot <= tsl_region.last_epoch; slot++) {
    CHECK_EQ(tsl_epoch_at(slot)->held_bytes, total[slot]);
    CHECK_EQ(tsl_epoch_at(slot)->children, children[slot]);
  }
  free(held);
  free(total);
  free(children);
}

// E2. For epochs whose heaps are all on the epoch's list or ended with it.
static inline void state_check_undrained(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct state_held *held = state_held();
  uint32_t pieces = held[slot].sealed + held[slot].large, heaps = 0;
  for (uint32_t i = 1; i <= tsl_region.last_heap; i++)
    heaps += tsl_heap_at(i)->epoch == slot && tsl_part_of(tsl_heap_at(i))->sealing == 0;
  if (tsl_epoch_state(epoch->word) == TSL_EPOCH_OPEN) heaps = 1;
  CHECK_EQ(epoch->undrained, pieces + epoch->children + heaps);
  free(held);
}

// A block that the owner of its slab has yet to collect.
static inline bool state_is_on_its_way(const void *block) {
  struct tsl_position at = tsl_slab_position(tsl_class_around(block), block);
  if (tsl_code_is_cell(tsl_entry_code(tsl_map_lookup(block))) || at.index < 0) return false;
  return at.slab->sealed == 0 && (at.slab->remote[at.index / 64] >> at.index % 64 & 1) != 0;
}

// KE1: a block that is kept lives.
static inline void state_check_kept(void) {
  size_t units = tsl_region.has_kept == 0 ? 0 : tsl_region.units;
  for (size_t unit = tsl_region.first_unit; unit < units; unit++) {
    uintptr_t start = tsl_unit_address(unit);
    if (!tsl_kept_any(start, TSL_UNIT_BYTES)) continue;
    for (size_t at = 0; at < TSL_UNIT_BYTES; at += TSL_BLOCK_ALIGNMENT) {
      const void *block = (const void *)(start + at);
      bool is_live = tsl_inspect_epoch_of(block) != TSLAB_NO_EPOCH;
      if (tsl_kept_has(block)) CHECK(is_live || state_is_on_its_way(block));
    }
  }
}

static inline void state_check(void) {
  state_end_helper();
  state_check_segments();
  if (tsl_region.units == 0) return;
  struct state_found found = state_find();
  state_check_heaps(&found);
  state_check_epochs();
  state_check_kept();
  size_t kept = state_cached_units() + tsl_detention_units();
  CHECK_EQ(found.units + kept + tsl_units_free(), tsl_units_open());
}
