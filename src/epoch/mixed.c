#include "epoch/mixed.h"

#include "base/check.h"
#include "epoch/epoch.h"
#include "epoch/misuse.h"
#include "epoch/report.h"
#include "epoch/sample.h"

enum {
  MOST_PAGES = 256,         // 1 MiB: an epoch's share of one thread that is larger lives in slabs
  OLDEST_LOOKED_AT = 4,     // cells
  TOLD_GRANULES = 1 << 14,  // 256 KiB, allocated or freed, after which a part is told of
  ROOM = 4,                 // a cell is at least so many times as large as what it is taken for
};

static void list_add(struct tsl_heap *heap, tsl_cell_number number) {
  struct tsl_cell *cell = tsl_cell_at(number);
  cell->older = heap->cells;
  cell->newer = 0;
  if (heap->cells != 0) tsl_cell_at(heap->cells)->newer = number;
  if (heap->cells == 0) heap->cells_oldest = number;
  heap->cells = number;
  heap->cell_count++;
}

// Not the newest: that one is being cut.
static void list_add_behind(struct tsl_heap *heap, tsl_cell_number number) {
  if (heap->cell_end == 0) return list_add(heap, number);
  struct tsl_cell *cell = tsl_cell_at(number), *newest = tsl_cell_at(heap->cells);
  cell->newer = heap->cells;
  cell->older = newest->older;
  *(newest->older != 0 ? &tsl_cell_at(newest->older)->newer : &heap->cells_oldest) = number;
  newest->older = number;
  heap->cell_count++;
}

static void list_remove(struct tsl_heap *heap, tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  *(cell->newer != 0 ? &tsl_cell_at(cell->newer)->older : &heap->cells) = cell->older;
  *(cell->older != 0 ? &tsl_cell_at(cell->older)->newer : &heap->cells_oldest) = cell->newer;
  heap->cell_count--;
}

void tsl_mixed_give(tsl_cell_number number) {
  tsl_unit unit = number / TSL_UNIT_PAGES;
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
  uint32_t epoch = tsl_cell_at(number)->epoch, sample = tsl_cell_at(number)->sample;
  if (tsl_unlikely(sample != 0)) tsl_sample_end(sample);
  size_t bytes = tsl_sizeclasses[tsl_entry_code(entry) / 2].bytes;
  tsl_cell_close(number);
  tsl_heap_put_any(entry, (void *)tsl_cell_address(number));
  tsl_epoch_discharge(epoch, bytes);
}

void tsl_mixed_drained(tsl_cell_number number) {
  uint32_t epoch = tsl_cell_at(number)->epoch;
  tsl_mixed_give(number);
  tsl_epoch_drain(epoch, 1);
}

static void drop(struct tsl_heap *heap, tsl_cell_number number) {
  uint8_t inside = heap->home->inside;
  tsl_store_relaxed(&heap->home->inside, 1);
  heap->cell_pages -= tsl_sizeclasses[tsl_mixed_cell_class(number)].bytes >> TSL_CELL_PAGE_LOG2;
  list_remove(heap, number);
  tsl_mixed_give(number);
  tsl_store_relaxed(&heap->home->inside, inside);
}

void tsl_mixed_retire(struct tsl_heap *heap) {
  if (heap->cell_end == 0) return;
  struct tsl_cell *cell = tsl_cell_at(heap->cells);
  tsl_store_relaxed(&cell->blocks, heap->cell_blocks);
  cell->freed = tsl_cell_shares_objects(heap->cell_freed);
  cell->granules = (uint32_t)((heap->cell_next - heap->cell_start) >> TSL_GRANULE_LOG2);
  heap->cut_objects += cell->blocks;
  heap->cut_granules += cell->granules;
  heap->freed_objects += cell->freed;
  heap->freed_granules += tsl_cell_shares_granules(heap->cell_freed);
  heap->cell_blocks = 0;
  heap->cell_freed = 0;
  heap->cell_start = 0;
  heap->cell_next = 0;
  heap->cell_end = 0;
  heap->sampled_cell = false;
}

// Whether more than half of the blocks of the oldest cells are dead. Cells without any are given
// back.
static bool oldest_are_dead(struct tsl_heap *heap) {
  size_t blocks = 0, out = 0;
  tsl_cell_number number = heap->cells_oldest, newer;
  for (unsigned i = 0; i < OLDEST_LOOKED_AT && number != 0; i++, number = newer) {
    newer = tsl_cell_at(number)->newer;
    uint32_t cell_out = tsl_cell_out(number);
    blocks += tsl_cell_at(number)->blocks;
    out += cell_out;
    if (cell_out == 0) drop(heap, number);
  }
  return 2 * out < blocks;
}

// The first cell is small, since most epochs are.
static unsigned next_class(const struct tsl_heap *heap) {
  const struct tsl_epoch *epoch = tsl_epoch_at(heap->epoch);
  return heap->cells == 0 ? epoch->first_cell : epoch->largest_cell;
}

// Where a hard limit is near, a smaller cell will do.
static unsigned class_within_limit(const struct tsl_heap *heap, unsigned class, size_t bytes) {
  size_t room = tsl_epoch_room(heap->epoch);
  while (class > TSL_CELL_4K && tsl_sizeclasses[class].bytes > room &&
         tsl_sizeclasses[class - 1].bytes >= bytes)
    class -= 1;
  return class;
}

static size_t newest_bytes(const struct tsl_heap *heap) {
  return tsl_sizeclasses[tsl_mixed_cell_class(heap->cells)].bytes;
}

// The newest cell can be cut to its end, or to the block that holds the next point behind `from`.
static void cell_set_end(struct tsl_heap *heap, uintptr_t from, size_t bytes) {
  uintptr_t end = heap->cell_start + bytes;
  bool draws = tsl_sample_is_on() && from < end;
  size_t point = draws ? tsl_sample_within(heap, end - from) : SIZE_MAX;
  heap->sampled_cell = point != SIZE_MAX;
  heap->cell_end = heap->sampled_cell ? from + point : end;
}

void tsl_mixed_redraw(struct tsl_heap *heap) {
  if (heap->cell_end != 0) cell_set_end(heap, heap->cell_next, newest_bytes(heap));
}

static void cell_begin(struct tsl_heap *heap, tsl_cell_number number, size_t bytes) {
  uintptr_t start = tsl_cell_address(number);
  heap->cell_start = start;
  heap->cell_next = start;
  cell_set_end(heap, start, bytes);
  heap->cell_blocks = 0;
  heap->cell_freed = 0;
  heap->told_next = TSL_NEVER_TOLD;
}

// 0 when memory is out or a limit refuses it. What a limit's callback did has been done by then.
static tsl_cell_number cell_get(struct tsl_heap *heap, unsigned class) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  if (!tsl_epoch_charge(heap->epoch, bytes)) {
    heap->refused = true;
    return 0;
  }
  void *memory = tsl_heap_pop_quietly(heap->home, class);
  if (memory == NULL) {
    tsl_epoch_discharge(heap->epoch, bytes);
    return 0;
  }
  tsl_cell_number number = tsl_cell_of(memory, class);
  tsl_cell_open(number, heap->number, heap->epoch);
  heap->cell_pages += (uint32_t)(bytes >> TSL_CELL_PAGE_LOG2);
  return number;
}

// A thread may stay in its scope for ever.
static void tell(struct tsl_heap *heap) {
  bool is_due = heap->cut_granules - heap->told_granules >= TOLD_GRANULES ||
                heap->freed_granules - heap->told_freed_granules >= TOLD_GRANULES;
  if (is_due && tsl_report_is_on()) tsl_report_cells(heap);
}

static bool cell_take(struct tsl_heap *heap, unsigned class) {
  tsl_cell_number number = cell_get(heap, class);
  if (number == 0) return false;
  tsl_mixed_retire(heap);  // a limit's callback may have allocated here
  heap->home->store->cells.taken++;
  list_add(heap, number);
  cell_begin(heap, number, tsl_sizeclasses[class].bytes);
  tell(heap);
  return true;
}

static void cell_fill(struct tsl_heap *heap, tsl_cell_number number, unsigned class) {
  struct tsl_cell *cell = tsl_cell_at(number);
  list_add_behind(heap, number);
  tsl_store_relaxed(&cell->blocks, 1);
  cell->granules = tsl_sizeclasses[class].bytes >> TSL_GRANULE_LOG2;
  heap->cut_objects++;
  heap->cut_granules += cell->granules;
  tsl_store_relaxed(tsl_granule_at(tsl_cell_address(number)), (uint8_t)(class + 1));
  heap->told_next = TSL_NEVER_TOLD;
  tell(heap);
}

void *tsl_mixed_alone(struct tsl_heap *heap, unsigned class) {
  unsigned cell_class = TSL_CELL_4K;
  while (cell_class < TSL_BINS && tsl_sizeclasses[cell_class].bytes < tsl_sizeclasses[class].bytes)
    cell_class += 1;
  if (cell_class == TSL_BINS) return NULL;
  uint8_t inside = heap->home->inside;
  tsl_store_relaxed(&heap->home->inside, 1);
  tsl_cell_number number = cell_get(heap, cell_class);
  if (number != 0) cell_fill(heap, number, class);
  tsl_store_relaxed(&heap->home->inside, inside);
  heap->refused = false;
  return number == 0 ? NULL : (void *)tsl_cell_address(number);
}

tsl_cell_number tsl_mixed_cell_of(const void *block) {
  return tsl_cell_of(block, tsl_entry_code(tsl_map_lookup(block)) / 2);
}

// The oldest goes to the end of the queue, or back when it is empty.
static void look_at_oldest(struct tsl_heap *home) {
  tsl_cell_number number = home->cells_oldest;
  if (tsl_cell_out(number) == 0) return drop(home, number);
  list_remove(home, number);
  list_add(home, number);
}

void tsl_mixed_look(struct tsl_heap *home, uint32_t most) {
  uint8_t inside = home->inside;
  tsl_store_relaxed(&home->inside, 1);
  for (uint32_t left = home->cell_count < most ? home->cell_count : most; left != 0; left--)
    look_at_oldest(home);
  tsl_store_relaxed(&home->inside, inside);
}

// Whether the heap goes on in slabs.
static bool outgrown(struct tsl_heap *heap) {
  if (heap->cell_pages >= MOST_PAGES) return true;
  return heap->cell_count >= OLDEST_LOOKED_AT && oldest_are_dead(heap);
}

static bool newest_is_empty(const struct tsl_heap *heap) {
  return heap->cell_end != 0 && tsl_cell_shares_objects(heap->cell_freed) == heap->cell_blocks;
}

// A program that frees each block soon stays in one cell, which is still in the processor's cache.
static bool cell_restart(struct tsl_heap *heap) {
  size_t bytes = newest_bytes(heap);
  tsl_mixed_retire(heap);
  heap->home->store->cells.restarted++;
  tsl_cell_clear(heap->cells);
  cell_begin(heap, heap->cells, bytes);
  tell(heap);
  return true;
}

static bool cell_renew(struct tsl_heap *heap, size_t bytes) {
  if (newest_is_empty(heap) && newest_bytes(heap) >= ROOM * bytes) return cell_restart(heap);
  tsl_mixed_retire(heap);
  if (outgrown(heap)) {
    heap->mixed = false;
    return false;
  }
  unsigned class = next_class(heap);
  while (tsl_sizeclasses[class].bytes < ROOM * bytes && class < TSL_CELL_64K) class += 1;
  return cell_take(heap, class_within_limit(heap, class, bytes));
}

// Makes room for a block and the gap before it in a new cell.
static bool mixed_extend(struct tsl_heap *heap, size_t bytes, size_t gap) {
  if (bytes > TSL_CELL_BLOCK_LIMIT || !heap->mixed) return false;
  uint8_t inside = heap->home->inside;
  tsl_store_relaxed(&heap->home->inside, 1);
  bool renewed = cell_renew(heap, bytes + gap);
  tsl_store_relaxed(&heap->home->inside, inside);
  return renewed;
}

static void *cut(struct tsl_heap *heap, size_t place) {
  TSL_RETURN_CUT(heap, place);
  return NULL;
}

// The block that holds the point is to be sampled; the cell goes on with the next one. When it is
// not, it lies in the cell all the same, and the point has passed. NULL then, and where no block
// holds the point: it lay in the gap before the next one, or that has no room.
static void *cell_sample(struct tsl_heap *heap, unsigned class, size_t alignment) {
  size_t cell_bytes = newest_bytes(heap);
  uintptr_t block = tsl_round_up(heap->cell_next, alignment);
  uintptr_t behind = block + tsl_sizeclasses[class].bytes;
  if (behind > heap->cell_start + cell_bytes) return NULL;
  if (heap->cell_end < block) cell_set_end(heap, block, cell_bytes);
  if (!heap->sampled_cell || behind <= heap->cell_end) return NULL;
  uint32_t times = tsl_sample_times(heap);
  cell_set_end(heap, heap->cell_next, cell_bytes);
  void *sampled = tsl_sample_small(heap, class, times);
  if (sampled == NULL && heap->cell_end != 0) cell_set_end(heap, behind, newest_bytes(heap));
  return sampled;
}

// NULL when the newest cell has no room before its end, which may be a point.
static void *aligned_cut(struct tsl_heap *heap, unsigned class, size_t alignment) {
  uintptr_t block = tsl_round_up(heap->cell_next, alignment);
  if (block + tsl_sizeclasses[class].bytes > heap->cell_end) return NULL;
  heap->freed_granules += (block - heap->cell_next) >> TSL_GRANULE_LOG2;  // the gap
  heap->cell_next = block;
  return cut(heap, class * sizeof(struct tsl_bin));
}

// The same where the end was a point.
static void *cut_beyond_point(struct tsl_heap *heap, unsigned class, size_t alignment) {
  if (tsl_likely(!heap->sampled_cell)) return NULL;
  void *block = cell_sample(heap, class, alignment);
  return block != NULL ? block : aligned_cut(heap, class, alignment);
}

void *tsl_mixed_aligned(struct tsl_heap *heap, unsigned class, size_t alignment) {
  void *block = aligned_cut(heap, class, alignment);
  if (block == NULL) block = cut_beyond_point(heap, class, alignment);
  if (block != NULL) return block;
  if (!mixed_extend(heap, tsl_sizeclasses[class].bytes, alignment)) return NULL;
  block = aligned_cut(heap, class, alignment);
  return block != NULL ? block : cut_beyond_point(heap, class, alignment);
}

void *tsl_mixed_refill(struct tsl_heap *heap, unsigned class) {
  size_t place = class * sizeof(struct tsl_bin), alignment = 1u << TSL_GRANULE_LOG2;
  void *block = cut_beyond_point(heap, class, alignment);
  if (block != NULL) return block;
  if (!mixed_extend(heap, tsl_sizeclasses[class].bytes, 0)) return NULL;
  block = cut(heap, place);
  return tsl_likely(block != NULL) ? block : cut_beyond_point(heap, class, alignment);
}

TSL_COLD void tsl_mixed_free_nothing(const void *block) {
  bool twice = tsl_load_relaxed(tsl_granule_at((uintptr_t)block)) >= TSL_CELL_FREED;
  if (twice) return tsl_misuse_twice(block);
  tsl_misuse_interior(block);
}

static bool is_block(const void *block, unsigned byte) {
  bool misaligned = ((uintptr_t)block & ((1u << TSL_GRANULE_LOG2) - 1)) != 0;
  return !misaligned && tsl_granule_live(byte) < TSL_CLASSES;
}

// Marks a block free that somebody else may be counting; returns its granule's byte, 0 when it is
// none.
static unsigned mark_remote(uint8_t *granule,  // NOLINT(readability-non-const-parameter)
                            const void *block) {
  if (!is_block(block, tsl_load_relaxed(granule))) return 0;
  unsigned byte = tsl_or_relaxed(granule, (uint8_t)TSL_CELL_FREED);
  return is_block(block, byte) ? byte : 0;
}

// `owner`: the heap whose cell it is; 0 when it is sealed.
TSL_NOINLINE static void free_remote(tsl_cell_number number, uint32_t owner, void *block) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t epoch = cell->epoch, sample = cell->sample;
  uint8_t *granule = tsl_granule_at((uintptr_t)block);
  unsigned byte = mark_remote(granule, block);
  if (byte == 0) return tsl_mixed_free_nothing(block);
  if ((byte & TSL_CELL_COUNTED) != 0) {
    tsl_report_survivor_freed(epoch, tsl_granule_class(byte));
  } else if (owner != 0) {
    tsl_report_away(owner, tsl_granule_class(byte));
  }
  if (tsl_unlikely(sample != 0)) {
    cell->sample = 0;
    tsl_sample_end(sample);
  }
  if (tsl_unlikely(tsl_cell_put_remote(number))) tsl_mixed_drained(number);
}

void tsl_mixed_free_older(struct tsl_heap *current, void *block, unsigned code) {
  tsl_cell_number number = tsl_cell_of(block, code / 2);
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t owner = tsl_load_acquire(&cell->heap);  // pairs: cell-sealed
  if (tsl_unlikely(owner == current->home->number)) current = current->home;
  if (tsl_unlikely(owner != current->number)) return free_remote(number, owner, block);
  unsigned byte = tsl_mixed_mark(tsl_granule_at((uintptr_t)block), block);
  if (byte == 0) return tsl_mixed_free_nothing(block);
  current->told_next = TSL_NEVER_TOLD;
  current->freed_objects++;
  current->freed_granules += tsl_cell_shares_granules(tsl_cell_shares[byte]);
  tsl_store_relaxed(&cell->freed, cell->freed + 1);
  if (tsl_unlikely(cell->freed == cell->blocks)) drop(current, number);
  tell(current);
}

unsigned tsl_mixed_class(const void *block) {
  if (((uintptr_t)block & ((1u << TSL_GRANULE_LOG2) - 1)) != 0) return TSL_BINS;
  unsigned class = tsl_granule_live(tsl_load_relaxed(tsl_granule_at((uintptr_t)block)));
  return class < TSL_CLASSES ? class : TSL_BINS;
}
