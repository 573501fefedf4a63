#include "heap/cells.h"

#include "base/tools.h"
#include "heap/charge.h"
#include "heap/extent.h"
#include "heap/freed.h"
#include "heap/handful.h"
#include "heap/hold.h"
#include "heap/loose.h"
#include "memory/kept.h"
#include "state/change.h"
#include "state/cut_back.h"
#include "state/epoch.h"
#include "state/history.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "tell/epochs.h"
#include "tell/events.h"
#include "tell/heaps.h"
#include "tell/points.h"
#include "tell/process.h"
#include "tell/sample.h"

enum { TOLD_GRANULES = 1 << 14 };  // 256 KiB, allocated or freed, after which a part is told of

static void count_cell(struct tsl_heap *heap) {
  heap->cell_count++;
  if (heap->cell_count > 1 && !tsl_heap_is_home(heap)) tsl_part_grow(tsl_part_of(heap));
}

void tsl_cells_add(struct tsl_heap *heap, tsl_cell_number number) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_cell *cell = tsl_cell_at(number);
  tsl_store_relaxed(&cell->older, heap->cells);
  cell->newer = 0;
  if (heap->cells != 0) tsl_cell_at(heap->cells)->newer = number;
  if (heap->cells == 0) heap->cells_oldest = number;
  heap->cells = number;
  count_cell(heap);
}

// Lists a cell behind the newest one, which the heap allocates in.
static void list_add_behind(struct tsl_heap *heap, tsl_cell_number number) {
  tsl_assert(tsl_owner_is_me(heap));
  if (heap->cell_end == 0) return tsl_cells_add(heap, number);
  struct tsl_cell *cell = tsl_cell_at(number), *newest = tsl_cell_at(heap->cells);
  cell->newer = heap->cells;
  tsl_store_relaxed(&cell->older, newest->older);
  *(newest->older != 0 ? &tsl_cell_at(newest->older)->newer : &heap->cells_oldest) = number;
  tsl_store_relaxed(&newest->older, number);
  count_cell(heap);
}

static void cells_remove(struct tsl_heap *heap, tsl_cell_number number) {
  tsl_assert(tsl_owner_is_me(heap));
  const struct tsl_cell *cell = tsl_cell_at(number);
  tsl_store_relaxed(cell->newer != 0 ? &tsl_cell_at(cell->newer)->older : &heap->cells,
                    cell->older);
  *(cell->older != 0 ? &tsl_cell_at(cell->older)->newer : &heap->cells_oldest) = cell->newer;
  heap->cell_count--;
}

// What was handed out of a cell that is not sealed. Between sampled blocks lie gaps, which are not
// counted.
static uint32_t cut_granules(tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  if (tsl_likely(tsl_load_relaxed(&cell->sample) != TSL_CELL_SAMPLES)) return cell->granules;
  const uint8_t *granule = tsl_granule_at(tsl_cell_address(number));
  uint32_t granules = 0;
  for (uint32_t i = 0; i < cell->granules; i++) {
    unsigned byte = tsl_load_relaxed(&granule[i]) & (TSL_CELL_COUNTED - 1u);
    granules += tsl_cell_shares_granules(tsl_cell_shares[byte]);
  }
  return granules;
}

// Of these, about what others freed: their share of the blocks.
static uint32_t others_granules(tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t others = tsl_load_relaxed(tsl_cell_remote(number)) - TSL_CELL_BIAS;
  return others == 0 || cell->blocks == 0 ? 0 : cut_granules(number) * others / cell->blocks;
}

void tsl_cells_collect(tsl_cell_number number) {
  if (tsl_load_relaxed(&tsl_cell_at(number)->heap) == 0) return;
  uint32_t granules = others_granules(number);
  if (granules != 0) tsl_loose_collect_bytes((size_t)granules << TSL_GRANULE_LOG2);
}

// A block's sample, unless it ended. Another thread may free the block meanwhile.
static void sample_end(tsl_cell_number number, const void *block) {
  uint32_t sample = tsl_exchange_relaxed(tsl_cell_sample_of(number, block), 0);
  if (sample != 0) tsl_sample_end(sample, block);
}

void tsl_cells_end_samples(tsl_cell_number number, unsigned least) {
  if (tsl_likely(tsl_load_relaxed(&tsl_cell_at(number)->sample) == 0)) return;
  uintptr_t at = tsl_cell_address(number);
  for (uint32_t i = 0; i < tsl_cell_at(number)->granules; i++, at += 1u << TSL_GRANULE_LOG2)
    if (tsl_load_relaxed(tsl_granule_at(at)) >= least) sample_end(number, (const void *)at);
}

// All that is needed later is read before the record is closed. Samples end while the blocks are
// still there; the epoch is discharged when it has the memory no longer.
void tsl_cells_give(tsl_cell_number number) {
  tsl_unit unit = number / TSL_UNIT_PAGES;
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
  uint32_t epoch = tsl_cell_at(number)->epoch;
  tsl_cells_end_samples(number, 1);
  size_t bytes = tsl_sizeclasses[tsl_entry_class(entry)].bytes;
  tsl_cells_collect(number);
  tsl_cell_close(number);
  tsl_tools_end(tsl_cell_address(number), bytes);
  tsl_heap_put_any(entry, (void *)tsl_cell_address(number));
  tsl_epoch_discharge(epoch, bytes);
}

// Drains last: the epoch may retire there, and its slot be another one's.
void tsl_cells_drained(tsl_cell_number number) {
  uint32_t epoch = tsl_cell_at(number)->epoch;
  tsl_cells_give(number);
  tsl_epoch_drain(epoch, 1);
}

void tsl_cells_unlist(struct tsl_heap *heap, tsl_cell_number number) {
  heap->cell_pages -= tsl_sizeclasses[tsl_cells_class(number)].bytes >> TSL_CELL_PAGE_LOG2;
  heap->gone_granules += cut_granules(number) - others_granules(number);
  cells_remove(heap, number);
}

void tsl_cells_drop(struct tsl_heap *heap, tsl_cell_number number) {
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_cells_unlist(heap, number);
  tsl_cells_give(number);
  tsl_change_end(change);
}

void tsl_cells_tell(struct tsl_heap *heap) {
  bool is_due = (uint32_t)heap->cut_granules - heap->told_granules >= TOLD_GRANULES ||
                (uint32_t)heap->freed_granules - heap->told_freed_granules >= TOLD_GRANULES;
  if (is_due && tsl_report_is_on()) tsl_report_cells(heap);
}

// Charges first, as tsl_heap_open_slab does. Where the home has no memory, `refused` stays false:
// malloc then empties the caches and tries again.
tsl_cell_number tsl_cells_take(struct tsl_heap *heap, unsigned class) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  if (!tsl_epoch_charge(heap->epoch, bytes)) {
    heap->refused = true;
    return 0;
  }
  void *memory = tsl_heap_pop_quietly(&heap->home->heap, class);
  if (memory == NULL) {
    tsl_epoch_discharge(heap->epoch, bytes);
    return 0;
  }
  tsl_cell_number number = tsl_cell_of(memory, class);
  tsl_tools_begin((uintptr_t)memory, bytes);
  tsl_extent_add(heap->epoch, number / TSL_UNIT_PAGES);
  tsl_cell_open(number, heap->number, heap->epoch);
  heap->cell_pages += (uint32_t)(bytes >> TSL_CELL_PAGE_LOG2);
  if (tsl_report_is_on()) tsl_report_growth();
  return number;
}

void tsl_cells_hand_out(struct tsl_heap *heap, tsl_cell_number number, uintptr_t block,
                        unsigned class) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uintptr_t before = (block - tsl_cell_address(number)) >> TSL_GRANULE_LOG2;
  size_t own = tsl_sizeclasses[class].bytes >> TSL_GRANULE_LOG2;
  tsl_assert(tsl_owner_is_me(heap) && before >= cell->granules);
  tsl_store_relaxed(&cell->blocks, cell->blocks + 1);
  cell->granules = (uint16_t)(before + own);
  heap->cut_objects++;
  heap->cut_granules += own;
  tsl_store_relaxed(tsl_granule_at(block), tsl_granule_byte(class));
  tsl_cells_tell(heap);
}

// The oldest goes to the end of the queue, before the one that the heap allocates in, or back when
// it is empty.
static void rotate(struct tsl_heap *heap, tsl_cell_number oldest) {
  if (tsl_cell_out(oldest) == 0) return tsl_cells_drop(heap, oldest);
  cells_remove(heap, oldest);
  list_add_behind(heap, oldest);
}

static void cells_rotate(struct tsl_heap *heap, uint32_t most) {
  uint32_t cut = heap->cell_end != 0, whole = heap->cell_count - cut;
  for (uint32_t left = whole < most ? whole : most; left != 0; left--)
    rotate(heap, heap->cells_oldest);
}

void tsl_cells_look(struct tsl_home *home, uint32_t most) {
  struct tsl_change change = tsl_change_begin(home);
  cells_rotate(&home->heap, most);
  tsl_change_end(change);
}

// Others may have freed sampled blocks, of which a part in slabs hears by nothing else.
tsl_cell_number tsl_cells_take_apart(struct tsl_heap *heap, unsigned class) {
  cells_rotate(heap, TSL_CELLS_FEW);
  tsl_cell_number number = tsl_cells_take(heap, class);
  if (number != 0) list_add_behind(heap, number);
  return number;
}

tsl_cell_number tsl_cells_of(const void *block) {
  return tsl_cell_of(block, tsl_class_around(block));
}

// A point to sample lies at a place of the cell: what is allocated again before that place would
// never reach it.
static bool may_cut_back(struct tsl_heap *heap, uintptr_t block) {
  uint32_t cut = (uint32_t)(heap->cell_next - heap->cell_start), before = heap->cell_furthest;
  uint32_t furthest = cut > before ? cut : before;
  tsl_store_relaxed(&heap->cell_furthest, furthest);
  if (block - heap->cell_start + TSL_CELL_MOST_BACK < furthest) return false;
  return tsl_cell_shares_granules(heap->cell_recut) < TSL_CELL_MOST_RECUT && !tsl_points_are_on();
}

TSL_FAST void tsl_cells_free_last(struct tsl_heap *heap, void *block, unsigned byte) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!may_cut_back(heap, (uintptr_t)block)) return tsl_cells_mark_newest(heap, block, byte);
  tsl_store_relaxed(tsl_granule_at((uintptr_t)block), 0);
  tsl_compiler_fence();  // pairs: heap-torn
  tsl_store_relaxed(&heap->cell_next, (uintptr_t)block);
  tsl_store_relaxed(&heap->cell_cut_back, tsl_cut_back(heap, (uintptr_t)block, byte));
  heap->cell_blocks--;
  heap->cell_recut += tsl_cell_shares[byte];
}

// The end moves first: were the byte first, the child of a fork might cut blocks inside of this
// one. The helper leaves alone what the block may take then (TSL_CELL_MOST_BACK).
bool tsl_cells_stretch(struct tsl_heap *heap, const void *block, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!tsl_cells_are_newest(heap, block)) return false;
  uint8_t *granule = tsl_granule_at((uintptr_t)block);
  unsigned byte = tsl_load_relaxed(granule);
  if (!tsl_cells_is_plain(byte, block)) return false;
  uintptr_t start = (uintptr_t)block, end = start + tsl_sizeclasses[tsl_granule_class(byte)].bytes;
  uintptr_t wanted = start + tsl_sizeclasses[class].bytes;
  if (end != heap->cell_next || wanted > heap->cell_end) return false;
  tsl_store_relaxed(&heap->cell_next, wanted);
  tsl_compiler_fence();  // pairs: heap-torn
  tsl_store_relaxed(granule, tsl_granule_byte(class));
  return true;
}

// Whether the address lies where a heap cuts next, and has cut before: what was a block there was
// freed.
static bool was_cut_back(const void *block) {
  tsl_cell_number number = tsl_cells_of(block);
  uint32_t owner = tsl_load_acquire(&tsl_cell_at(number)->heap);  // pairs: cell-sealed
  const struct tsl_heap *heap = tsl_heap_at(owner);
  uintptr_t start = tsl_cell_address(number);
  if (owner == 0 || tsl_load_relaxed(&heap->cell_start) != start) return false;
  if ((uintptr_t)block < tsl_load_relaxed(&heap->cell_next)) return false;
  if (!tsl_granule_begins_at(block)) return false;
  return (uintptr_t)block - start < tsl_load_relaxed(&heap->cell_furthest);
}

static void free_nothing(const void *block) {
  bool twice = tsl_load_relaxed(tsl_granule_at((uintptr_t)block)) >= TSL_CELL_FREED;
  if (twice || was_cut_back(block)) return tsl_misuse_twice(block);
  tsl_misuse_interior(block);
}

static bool is_live_block(const void *block, unsigned byte) {
  return tsl_granule_begins_at(block) && tsl_granule_live(byte) < TSL_CLASSES;
}

// Marks a block free that a sealing thread may be counting at the same time. Returns its granule's
// byte before; 0 when no live block begins there.
static unsigned mark_remote(uint8_t *granule,  // NOLINT(readability-non-const-parameter)
                            const void *block) {
  if (!is_live_block(block, tsl_load_relaxed(granule))) return 0;
  unsigned byte = tsl_or_relaxed(granule, (uint8_t)TSL_CELL_FREED);
  return is_live_block(block, byte) ? byte : 0;
}

// Whether its epoch was released, and did not spare it. Its bit is taken off after the cell has got
// its rank.
static bool is_late(tsl_cell_number number, uint32_t epoch, const void *block) {
  if (!tsl_epoch_waits(epoch)) return false;
  bool is_kept = tsl_epoch_keeps(epoch) && tsl_kept_has(block);  // pairs: kept
  return !is_kept && tsl_cell_rank(number) == 0;
}

TSL_ALWAYS_INLINE void survivor_freed(uint32_t epoch, unsigned class) {
  tsl_history_freed(tsl_epoch_at(epoch)->label);
  tsl_report_survivor_freed(epoch, class);
}

// Frees a block in a cell of another thread's heap (`owner`), or in a sealed one (`owner` is 0), or
// one that was kept. Its sample's number is read before a bit of kept blocks is taken off: after
// that the cell may be made inaccessible (poison.h). Counts last: once the free is counted another
// thread may give the cell back.
TSL_NOINLINE static void free_remote(tsl_cell_number number, uint32_t owner, void *block) {
  struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t epoch = cell->epoch;
  uint8_t *granule = tsl_granule_at((uintptr_t)block);
  if (tsl_unlikely(is_late(number, epoch, block))) return tsl_misuse_late_free(block);
  unsigned byte = mark_remote(granule, block);
  if (byte == 0) return free_nothing(block);
  if (tsl_unlikely(tsl_load_relaxed(&cell->sample) != 0)) sample_end(number, block);
  if ((byte & TSL_CELL_COUNTED) != 0) {
    survivor_freed(epoch, tsl_granule_class(byte));
    if (tsl_unlikely(tsl_epoch_keeps(epoch))) tsl_kept_clear(block);  // KE1
  } else if (owner != 0) {
    tsl_report_away(owner, tsl_granule_class(byte));
  }
  if (tsl_unlikely(tsl_cell_put_remote(number))) return tsl_cells_drained(number);
  if (owner != 0) tsl_loose_send_in_cell(owner, tsl_granule_class(byte));
}

// The seal has counted all blocks that live there: only another free would change the byte.
void tsl_cells_free_sealed(tsl_cell_number number, void *block) {
  uint32_t epoch = tsl_cell_at(number)->epoch;
  uint8_t *granule = tsl_granule_at((uintptr_t)block);
  unsigned byte = tsl_load_relaxed(granule);
  bool is_counted = tsl_cells_is_plain(byte ^ TSL_CELL_COUNTED, block);
  if (tsl_unlikely(!is_counted || tsl_epochs_wait || tsl_epoch_keeps(epoch)))
    return free_remote(number, 0, block);
  if (tsl_unlikely(tsl_exchange_relaxed(granule, (uint8_t)(byte | TSL_CELL_FREED)) != byte))
    return tsl_misuse_twice(block);
  survivor_freed(epoch, tsl_granule_class(byte));
  if (tsl_unlikely(tsl_cell_put_remote(number))) tsl_cells_drained(number);
}

// A block that was kept is marked as counted: its thread frees it as any other thread does.
TSL_COLD void tsl_cells_free_odd(void *block) {
  if (!is_live_block(block, tsl_load_relaxed(tsl_granule_at((uintptr_t)block))))
    return free_nothing(block);
  tsl_cell_number number = tsl_cells_of(block);
  free_remote(number, tsl_load_acquire(&tsl_cell_at(number)->heap), block);  // pairs: cell-sealed
}

// The mark comes first: it leads the free to where the bit is taken off. A close may seal the cell
// meanwhile.
void tsl_cells_keep(const void *block) {
  tsl_cell_number number = tsl_cells_of(block);
  unsigned byte = tsl_or_relaxed(tsl_granule_at((uintptr_t)block), (uint8_t)TSL_CELL_COUNTED);
  tsl_kept_set(block);  // pairs: kept
  if ((byte & TSL_CELL_COUNTED) != 0) return;
  uint32_t counts[TSL_CLASSES] = {0};
  counts[tsl_granule_class(byte)] = 1;
  uint32_t owner = tsl_load_relaxed(&tsl_cell_at(number)->heap);
  if (owner != 0) tsl_report_away(owner, tsl_granule_class(byte));
  tsl_report_survivors(tsl_load_relaxed(&tsl_cell_at(number)->epoch), counts);
}

void tsl_cells_tell_piece(struct tsl_heap *heap) {
  tsl_cells_tell(heap);
  tsl_loose_add_cells(heap);
}

void tsl_cells_drop_freed(struct tsl_heap *heap, tsl_cell_number number) {
  tsl_cells_drop(heap, number);
  if (tsl_loose_has_piece(heap)) tsl_cells_tell_piece(heap);
}

// The number of a live block's sample; 0: it has none, or the program has written to where that
// stood.
static uint32_t sample_of(tsl_cell_number number, const void *block) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  bool lives = is_live_block(block, tsl_load_relaxed(tsl_granule_at((uintptr_t)block)));
  if (!lives || tsl_load_relaxed(&cell->sample) == 0) return 0;
  if (tsl_unlikely(is_late(number, tsl_load_relaxed(&cell->epoch), block))) return 0;
  uint32_t sample = tsl_load_relaxed(tsl_cell_sample_of(number, block));
  return tsl_sample_is_of(sample, block) ? sample : 0;
}

// In a scope the thread also frees blocks of its home's cells: those that were sampled (P1).
TSL_NOINLINE static void free_apart(struct tsl_heap *current, tsl_cell_number number,
                                    uint32_t owner, void *block) {
  uint32_t sample = sample_of(number, block);
  if (sample != 0) tsl_event_freed(current->home, sample);
  if (owner == current->home->heap.number) current = &current->home->heap;
  if (owner != current->number) return free_remote(number, owner, block);
  if (sample != 0) sample_end(number, block);
  tsl_cells_free_own(current, number, block);
}

void tsl_cells_free_older(struct tsl_heap *current, tsl_cell_number number, void *block) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t owner = tsl_load_acquire(&cell->heap);  // pairs: cell-sealed
  bool is_sampled = tsl_load_relaxed(&cell->sample) != 0;
  if (tsl_unlikely(owner != current->number || is_sampled))
    return free_apart(current, number, owner, block);
  tsl_cells_free_own(current, number, block);
}

// Blocks of the newest cell are counted in the heap, those of older ones in the cell (CE1).
static bool cell_valid(const struct tsl_heap *heap, tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  bool is_newest = heap->cell_end != 0 && number == heap->cells;
  if (cell->heap != heap->number || cell->epoch != heap->epoch) return false;
  if (!tsl_extent_has(heap->epoch, number / TSL_UNIT_PAGES)) return false;  // X1
  if (!tsl_is_cell(tsl_cells_class(number)) || cell->freed > cell->blocks) return false;
  return !is_newest || tsl_cell_address(number) == heap->cell_start;
}

bool tsl_cells_valid(const struct tsl_heap *heap) {
  uint32_t count = 0, pages = 0;
  tsl_cell_number newer = 0;
  for (tsl_cell_number at = heap->cells; at != 0; newer = at, at = tsl_cell_at(at)->older) {
    if (tsl_cell_at(at)->newer != newer || !cell_valid(heap, at)) return false;
    pages += tsl_sizeclasses[tsl_cells_class(at)].bytes >> TSL_CELL_PAGE_LOG2;
    count++;
  }
  return heap->cells_oldest == newer && heap->cell_count == count && heap->cell_pages == pages;
}

unsigned tsl_cells_block_class(const void *block) {
  if (!tsl_granule_begins_at(block)) return TSL_BINS;
  unsigned class = tsl_granule_live(tsl_load_relaxed(tsl_granule_at((uintptr_t)block)));
  return class < TSL_CLASSES ? class : TSL_BINS;
}
