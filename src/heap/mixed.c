#include "heap/mixed.h"

#include "base/tools.h"
#include "heap/cells.h"
#include "heap/charge.h"
#include "heap/part.h"
#include "heap/sampled.h"
#include "heap/store.h"
#include "os/os.h"
#include "state/change.h"
#include "state/cut_back.h"
#include "state/epoch.h"
#include "state/owner.h"
#include "tell/heaps.h"
#include "tell/points.h"

enum {
  MOST_PAGES = 256,      // 1 MiB: an epoch's share of one thread that is larger lives in slabs
  SLABS_PAGES = 48,      // so many the slabs of a small epoch touch (decision 036)
  OLDEST_LOOKED_AT = 4,  // cells, as another one is taken,
  MOST_LOOKED_AT = 64,   // and at a tick
  MANY_FREED = 512,      // blocks, after which a part that frees most of its own wants slabs
  FEW_FREED = 64,        // the same in a shared epoch, which never ends
  BUSY_FREED = 2048,     // a part is busy that frees so many blocks
  BUSY_MS = 16,          // in so long at most
  TIMES_HELD = 3,        // where many epochs are open, one has so many times what a cell takes
                         // before that cell, unless it is no larger than the first one
  ROOM = 4,              // a cell is at least so many times as large as what it is taken for
};

// What the block was that was cut back last is said after the end of its epoch as well (poison.h).
static bool mark_cut_back(const struct tsl_heap *heap) {
  unsigned byte = tsl_cut_back_byte(heap, heap->cell_next);
  if (!tsl_epochs_wait || byte == 0) return false;
  tsl_store_relaxed(tsl_granule_at(heap->cell_next), (uint8_t)(byte | TSL_CELL_FREED));
  return true;
}

void tsl_mixed_retire(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  if (heap->cell_end == 0) return;
  struct tsl_cell *cell = tsl_cell_at(heap->cells);
  tsl_store_relaxed(&cell->blocks, heap->cell_blocks);
  cell->freed = tsl_cell_shares_objects(heap->cell_freed);
  cell->thinned = 0;
  uint32_t granules = (uint32_t)(heap->cell_next - heap->cell_start) >> TSL_GRANULE_LOG2;
  cell->granules = (uint16_t)(granules + mark_cut_back(heap));
  uint32_t recut = tsl_cell_shares_objects(heap->cell_recut);
  uint32_t recut_granules = tsl_cell_shares_granules(heap->cell_recut);
  heap->cut_objects += cell->blocks + recut;
  heap->cut_granules += granules + recut_granules;
  heap->freed_objects += cell->freed + recut;
  heap->freed_granules += tsl_cell_shares_granules(heap->cell_freed) + recut_granules;
  heap->gone_granules += recut_granules;
  heap->loose_granules += recut_granules;
  heap->cell_blocks = 0;
  heap->cell_freed = 0;
  heap->cell_recut = 0;
  tsl_store_relaxed(&heap->cell_cut_back, 0);
  tsl_store_relaxed(&heap->cell_start, 0);
  tsl_store_relaxed(&heap->cell_furthest, 0);
  tsl_store_relaxed(&heap->cell_next, 0);
  heap->cell_end = 0;
  heap->sampled_cell = false;
}

// Gives back those without blocks among the oldest.
static void drop_empty(struct tsl_heap *heap, uint32_t most) {
  tsl_cell_number number = heap->cells_oldest, newer, cut = heap->cell_end == 0 ? 0 : heap->cells;
  for (; most != 0 && number != cut && number != 0; most--, number = newer) {
    newer = tsl_cell_at(number)->newer;
    if (tsl_cell_out(number) == 0) tsl_cells_drop(heap, number);
  }
}

void tsl_mixed_collect(struct tsl_heap *heap) {
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_mixed_retire(heap);
  drop_empty(heap, UINT32_MAX);
  tsl_change_end(change);
}

void tsl_mixed_look(struct tsl_heap *heap) { drop_empty(heap, MOST_LOOKED_AT); }

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
    if (cell_out == 0) tsl_cells_drop(heap, number);
  }
  return 2 * out < blocks;
}

// A large cell, which may stay uncut, is worth its memory where few epochs are open (decision 044).
static unsigned class_of_own(struct tsl_heap *heap, const struct tsl_epoch *epoch) {
  unsigned class = epoch->largest_cell;
  if (!tsl_part_has_many_like(tsl_part_of(heap))) return class;
  size_t held = (size_t)heap->cell_pages << TSL_CELL_PAGE_LOG2;
  while (class > epoch->first_cell && tsl_sizeclasses[class].bytes * TIMES_HELD > held) class -= 1;
  return class;
}

// Where none is at hand, a heap without cells takes what it needed last, and one whose cells hold
// survivors a small one, which the next survivor may keep. A program may have many labels: in a
// shared epoch cells grow only while more than half of what lies in them lives as they are full.
static unsigned next_class(struct tsl_heap *heap, bool is_at_hand) {
  const struct tsl_epoch *epoch = tsl_epoch_at(heap->epoch);
  if (heap->cells == 0) return heap->cell_class;
  if (!is_at_hand) return epoch->first_cell;
  if (!tsl_epoch_is_shared(epoch)) return class_of_own(heap, epoch);
  bool grows = 2 * tsl_cell_out(heap->cells) > tsl_cell_at(heap->cells)->blocks;
  return (unsigned)tsl_at_most(tsl_cells_class(heap->cells) + grows, epoch->largest_cell);
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
  return tsl_sizeclasses[tsl_cells_class(heap->cells)].bytes;
}

// Sets how far the newest cell can be cut without a look at samples: to its end, or to the next
// point behind `from`.
static void cell_set_end(struct tsl_heap *heap, uintptr_t from, size_t bytes) {
  uintptr_t end = heap->cell_start + bytes;
  bool draws = tsl_points_are_on() && from < end;
  size_t point = draws ? tsl_points_within(heap, end - from) : SIZE_MAX;
  heap->sampled_cell = point != SIZE_MAX;
  heap->cell_end = heap->sampled_cell ? from + point : end;
}

void tsl_mixed_redraw(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  if (heap->cell_end != 0) cell_set_end(heap, heap->cell_next, newest_bytes(heap));
}

static void cell_begin(struct tsl_heap *heap, tsl_cell_number number, size_t bytes) {
  tsl_assert(tsl_owner_is_me(heap));
  uintptr_t start = tsl_cell_address(number);
  tsl_store_relaxed(&heap->cell_start, start);
  tsl_store_relaxed(&heap->cell_next, start);
  cell_set_end(heap, start, bytes);
  heap->cell_blocks = 0;
  tsl_store_relaxed(&heap->cell_furthest, 0);
  heap->cell_freed = 0;
  heap->cell_recut = 0;
}

static bool cell_take(struct tsl_heap *heap, unsigned class) {
  tsl_cell_number number = tsl_cells_take(heap, class);
  if (number == 0) return false;
  tsl_mixed_retire(heap);  // a limit's callback may have allocated here
  heap->home->own->cells.taken++;
  tsl_cells_add(heap, number);
  cell_begin(heap, number, tsl_sizeclasses[class].bytes);
  tsl_cells_tell(heap);
  return true;
}

void tsl_mixed_empty(struct tsl_heap *heap, tsl_cell_number kept) {
  tsl_assert(tsl_owner_is_me(heap));
  tsl_assert(heap->cell_end == 0 && (kept == 0 || kept == heap->cells));
  for (tsl_cell_number number = heap->cells, older; number != 0; number = older) {
    older = tsl_cell_at(number)->older;
    if (number != kept) tsl_cells_give(number);
  }
  heap->cells = 0;
  heap->cells_oldest = 0;
  heap->cell_count = 0;
  heap->cell_pages = 0;
  if (kept == 0) return;
  tsl_cells_collect(kept);
  tsl_cell_clear(kept);
  tsl_cell_open(kept, heap->number, heap->epoch);
  tsl_cells_add(heap, kept);
  heap->cell_pages = (uint32_t)(newest_bytes(heap) >> TSL_CELL_PAGE_LOG2);
  tsl_tools_end(tsl_cell_address(kept), newest_bytes(heap));
}

void tsl_mixed_clear(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap) && heap->cell_count == 1);
  tsl_mixed_retire(heap);
  tsl_cell_clear(heap->cells);
  tsl_tools_end(tsl_cell_address(heap->cells), newest_bytes(heap));
}

void tsl_mixed_restart(struct tsl_heap *heap) {
  tsl_assert(heap->cell_count == 1 && heap->cell_end == 0);
  tsl_tools_begin(tsl_cell_address(heap->cells), newest_bytes(heap));
  cell_begin(heap, heap->cells, newest_bytes(heap));
}

// Whether the part took BUSY_MS at most for the last BUSY_FREED blocks that it freed. Looks at the
// clock once for each so many.
static bool is_busy(struct tsl_part *part, uint32_t freed) {
  if (freed - part->busy_freed < BUSY_FREED) return false;
  uint32_t now_ms = (uint32_t)tsl_os_now_ms(), took_ms = now_ms - part->busy_ms;
  part->busy_freed = freed;
  part->busy_ms = now_ms;
  return took_ms <= BUSY_MS;
}

// Each class of each part needs a slab of its own. So of a thread's parts only TSL_MOST_STORES have
// slabs because these are faster, and as many in shared epochs.
static bool has_place(const struct tsl_heap *heap) {
  const struct tsl_home *home = heap->home;
  bool is_shared = tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
  uint32_t in_slabs = is_shared ? home->own->shared_in_slabs : tsl_load_relaxed(&home->stores);
  return in_slabs < TSL_MOST_STORES;
}

// Slabs serve objects that end one by one in half the instructions. Parts of shared epochs have
// them without a place, too, while they are busy.
static bool frees_most(struct tsl_heap *heap) {
  uint64_t recut = tsl_cell_shares_objects(heap->cell_recut);
  uint64_t freed = heap->freed_objects + tsl_cell_shares_objects(heap->cell_freed) + recut;
  uint64_t cut = heap->cut_objects + heap->cell_blocks + recut;
  bool is_shared = tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
  uint64_t many = is_shared ? FEW_FREED : MANY_FREED;
  if (freed < many || 4 * freed < 3 * cut) return false;
  return has_place(heap) || (is_shared && is_busy(tsl_part_of(heap), (uint32_t)freed));
}

// Whether the heap goes on in slabs. In a shared epoch without a place for them, its cells may take
// as much as slabs would.
static bool outgrown(struct tsl_heap *heap) {
  if (heap->cell_pages >= MOST_PAGES) return true;
  if (heap->cell_count < OLDEST_LOOKED_AT || !oldest_are_dead(heap)) return false;
  bool is_shared = tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
  bool waits = is_shared ? !has_place(heap) : tsl_part_has_many_like(tsl_part_of(heap));
  return !waits || heap->cell_pages >= SLABS_PAGES;
}

static bool newest_is_empty(const struct tsl_heap *heap) {
  return heap->cell_end != 0 && tsl_cell_shares_objects(heap->cell_freed) == heap->cell_blocks;
}

// A program that frees each block soon stays in one cell, which is still in the processor's cache.
static bool cell_restart(struct tsl_heap *heap) {
  size_t bytes = newest_bytes(heap);
  tsl_mixed_retire(heap);
  heap->home->own->cells.restarted++;
  heap->gone_granules += tsl_cell_at(heap->cells)->granules;
  tsl_cell_clear(heap->cells);
  cell_begin(heap, heap->cells, bytes);
  tsl_cells_tell(heap);
  return true;
}

// That of the newest cell. One smaller if the heap began with such a cell, and what it cut has room
// in a smaller one.
static unsigned class_to_begin(const struct tsl_heap *heap) {
  unsigned class = tsl_cells_class(heap->cells);
  size_t cut = tsl_at_least(heap->cell_next - heap->cell_start, heap->cell_furthest);
  bool is_large = class > TSL_CELL_4K && cut <= tsl_sizeclasses[class - 1].bytes;
  return is_large && class == heap->cell_class ? class - 1 : class;
}

static uint32_t newest_out(const struct tsl_heap *heap) {
  uint32_t remote = tsl_load_acquire(tsl_cell_remote(heap->cells)) -  // pairs: cell-remote
                    TSL_CELL_BIAS;
  return heap->cell_blocks - tsl_cell_shares_objects(heap->cell_freed) - remote;
}

void tsl_mixed_rest(struct tsl_heap *heap) {
  if (heap->cell_end == 0 || newest_out(heap) != 0) return;
  struct tsl_change change = tsl_change_begin(heap->home);
  heap->cell_class = (uint8_t)class_to_begin(heap);
  tsl_mixed_retire(heap);
  tsl_cells_drop(heap, heap->cells);
  tsl_change_end(change);
}

// The cell at hand again, where nothing lives in it; else slabs, for a heap that frees most or
// holds much; else another cell.
static bool cell_renew(struct tsl_heap *heap, size_t bytes) {
  bool wants_slabs = frees_most(heap), is_at_hand = heap->cell_end != 0;
  if (!wants_slabs && newest_is_empty(heap) && newest_bytes(heap) >= ROOM * bytes)
    return cell_restart(heap);
  tsl_mixed_retire(heap);
  if (wants_slabs || outgrown(heap)) {
    heap->cell_class = 0;
    heap->home->own->shared_in_slabs += tsl_epoch_is_shared(tsl_epoch_at(heap->epoch));
    return false;
  }
  unsigned class = next_class(heap, is_at_hand);
  while (tsl_sizeclasses[class].bytes < ROOM * bytes && class < TSL_CELL_64K) class += 1;
  return cell_take(heap, class_within_limit(heap, class, bytes));
}

// Makes room for a block and the gap before it in a new cell.
static bool mixed_extend(struct tsl_heap *heap, size_t bytes, size_t gap) {
  if (bytes > TSL_CELL_BLOCK_LIMIT || heap->cell_class == 0) return false;
  struct tsl_change change = tsl_change_begin(heap->home);
  bool renewed = cell_renew(heap, bytes + gap);
  tsl_change_end(change);
  return renewed;
}

static void *cut(struct tsl_heap *heap, size_t offset) {
  TSL_RETURN_CUT(heap, offset);
  return NULL;
}

// Passes the point: the next one is drawn behind the next block.
static void pass_point(struct tsl_heap *heap, unsigned class, size_t alignment) {
  uintptr_t block = tsl_round_up(heap->cell_next, alignment);
  cell_set_end(heap, block + tsl_sizeclasses[class].bytes, newest_bytes(heap));
}

// Allocates the sampled block when the next block holds the point at the cell's end. That block
// lies in another cell; this one then goes on where it was. NULL when there is no
// such cell: the point is passed, and the caller cuts the block here. NULL also when no block holds
// the point: it lay in the gap before the next block, or that block has no room here.
static void *cell_sample(struct tsl_heap *heap, unsigned class, size_t alignment) {
  size_t cell_bytes = newest_bytes(heap);
  uintptr_t block = tsl_round_up(heap->cell_next, alignment);
  uintptr_t behind = block + tsl_sizeclasses[class].bytes;
  if (behind > heap->cell_start + cell_bytes) return NULL;
  if (heap->cell_end < block) cell_set_end(heap, block, cell_bytes);
  if (!heap->sampled_cell || behind <= heap->cell_end) return NULL;
  uint64_t apart = heap->sample_apart;
  cell_set_end(heap, heap->cell_next, cell_bytes);
  void *sampled = tsl_sampled_aligned(heap, class, apart, alignment);
  // A limit's callback may have left the heap in another cell, or in none.
  if (sampled == NULL && heap->cell_end != 0) pass_point(heap, class, alignment);
  return sampled;
}

// NULL when the newest cell has no room before its end, which may be a point.
static void *aligned_cut(struct tsl_heap *heap, unsigned class, size_t alignment) {
  uintptr_t block = tsl_round_up(heap->cell_next, alignment);
  if (block + tsl_sizeclasses[class].bytes > heap->cell_end) return NULL;
  heap->freed_granules += (block - heap->cell_next) >> TSL_GRANULE_LOG2;  // the gap
  tsl_store_relaxed(&heap->cell_next, block);
  return cut(heap, tsl_class_offset(class));
}

// The same where the cell's end may be a point.
static void *cut_beyond_point(struct tsl_heap *heap, unsigned class, size_t alignment) {
  if (tsl_likely(!heap->sampled_cell)) return NULL;
  void *block = cell_sample(heap, class, alignment);
  return block != NULL ? block : aligned_cut(heap, class, alignment);
}

void *tsl_mixed_aligned(struct tsl_heap *heap, unsigned class, size_t alignment) {
  tsl_assert(tsl_owner_is_me(heap));
  void *block = aligned_cut(heap, class, alignment);
  if (block == NULL) block = cut_beyond_point(heap, class, alignment);
  if (block != NULL) return block;
  if (!mixed_extend(heap, tsl_sizeclasses[class].bytes, alignment)) return NULL;
  block = aligned_cut(heap, class, alignment);
  return block != NULL ? block : cut_beyond_point(heap, class, alignment);
}

void *tsl_mixed_refill(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  size_t offset = tsl_class_offset(class), alignment = 1u << TSL_GRANULE_LOG2;
  void *block = cut_beyond_point(heap, class, alignment);
  if (block != NULL) return block;
  if (!mixed_extend(heap, tsl_sizeclasses[class].bytes, 0)) return NULL;
  block = cut(heap, offset);
  return tsl_likely(block != NULL) ? block : cut_beyond_point(heap, class, alignment);
}
