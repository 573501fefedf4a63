#include "alloc/malloc.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/thread.h"
#include "epoch/large_list.h"
#include "epoch/orphans.h"
#include "epoch/scope.h"
#include "heap/cells.h"
#include "heap/charge.h"
#include "heap/freed.h"
#include "heap/hold.h"
#include "heap/mixed.h"
#include "heap/remote.h"
#include "heap/visit.h"
#include "memory/detention.h"
#include "memory/large.h"
#include "memory/mirror.h"
#include "memory/purge.h"
#include "memory/unit_cache.h"
#include "observe/refusal.h"
#include "slab/zero.h"
#include "state/bin.h"
#include "state/epoch.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "tell/epochs.h"
#include "tell/sample.h"
#include "upkeep/collect.h"
#include "upkeep/pool.h"
#include "upkeep/refill.h"
#include "upkeep/reports.h"

// A limit refused, and has counted that.
static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

// The system refused what a heap of the epoch wanted.
static void *out_of_memory(uint32_t epoch) {
  tsl_add_relaxed(&tsl_counts.memory_refused, 1);
  tsl_report_memory_refused(epoch);
  return no_memory();
}

// The unit cache comes last: what the first step frees stops there.
TSL_COLD void tsl_memory_regain(void) {
  tsl_heap_collect_all();
  tsl_detention_end();
  tsl_unit_cache_drain(SIZE_MAX);
}

// The calling thread has no heap: not yet, or its destructor ran.
static void *malloc_first(unsigned class) {
  struct tsl_lease lease;
  if (!tsl_thread_enter(&lease)) return out_of_memory(0);
  void *block = tsl_malloc_class(class);
  tsl_thread_leave(&lease);
  return block;
}

// In the child of a fork that came in the middle of a change, the heaps of lost threads still wait
// to be adopted: slow paths do that. Where a limit refused, the caches do not help, and the system
// is not to blame. A helper is born last, because to create a thread the C library allocates.
TSL_NOINLINE static void *malloc_beyond_stock(unsigned class, struct tsl_heap *heap) {
  if (tsl_unlikely(heap == &tsl_home_empty.heap)) return malloc_first(class);
  if (tsl_unlikely(tsl_load_relaxed(&tsl_orphans_wait))) tsl_orphans_adopt_late();
  void *block = tsl_heap_refill(heap, class);
  if (tsl_unlikely(block == NULL) && !heap->refused) {
    tsl_memory_regain();
    block = tsl_heap_refill(heap, class);
    if (block == NULL && !heap->refused) tsl_refusal_report(tsl_sizeclasses[class].bytes);
  }
  tsl_purge_call_helper(0);
  if (tsl_likely(block != NULL)) return block;
  return heap->refused ? no_memory() : out_of_memory(heap->epoch);
}

TSL_NOINLINE static void *malloc_after_damage(size_t offset, struct tsl_heap *heap) {
  unsigned class = tsl_offset_class(offset);
  tsl_bin_check(heap, class);
  return tsl_fast_malloc(tsl_sizeclasses[class].bytes);
}

// Undoes what the fast path took from mark and counter. The slow path then takes the block as any
// other.
void *tsl_malloc_odd(struct tsl_heap *heap, size_t offset, struct tsl_free_block *block) {
  struct tsl_bin *bin = TSL_BIN(heap, offset);
  bool is_due = bin->until == UINT32_MAX;
  block->mark += (uintptr_t)heap + is_due;
  bin->until++;
  if (block->mark != (uintptr_t)heap) return malloc_after_damage(offset, heap);
  if (tsl_unlikely(tsl_load_relaxed(&tsl_orphans_wait))) tsl_orphans_adopt_late();
  return tsl_heap_pop_sampled(heap, tsl_offset_class(offset));
}

// The warm path of programs that allocate many blocks before they free any (the stock), and of
// young epochs (the cell): it needs no frame.
TSL_FAST void *tsl_malloc_beyond_bin(size_t offset, struct tsl_heap *heap) {
  if (tsl_likely(heap->cell_class != 0)) TSL_RETURN_CUT(heap, offset);
  if (tsl_unlikely(!tsl_bin_ends(heap, TSL_BIN(heap, offset))))
    return malloc_after_damage(offset, heap);
  struct tsl_stock *stock = (struct tsl_stock *)((char *)heap->store + 2 * offset);
  if (tsl_likely(stock->run != 0)) return tsl_stock_pop(stock);
  if (stock->rest != 0 && tsl_stock_run(stock)) return tsl_stock_pop(stock);
  return malloc_beyond_stock(tsl_offset_class(offset), heap);
}

// The secure build's bins are empty.
void *tsl_malloc_class(unsigned class) {
  if (!TSL_SECURE) return tsl_fast_malloc(tsl_sizeclasses[class].bytes);
  return tsl_malloc_beyond_bin(tsl_class_offset(class), tsl_heap_current);
}

void *tsl_malloc_slow(size_t bytes, struct tsl_heap *heap) {
  if (bytes > TSL_SMALL_LIMIT) return tsl_malloc_large(bytes, 1, NULL);
  size_t offset = tsl_class_offset(tsl_sizeclass_of_medium(bytes));
  TSL_RETURN_POPPED(heap, offset);
  return tsl_malloc_beyond_bin(offset, heap);
}

void *tsl_malloc_zero(size_t alignment) {
  return tsl_heap_current->epoch == 0 ? tsl_zero_take(alignment) : NULL;
}

// Holds and charges the epoch for a large block: it does not drain before the block is freed. Held
// first: the callback of a limit may close the epoch.
static bool large_charge(uint32_t epoch, size_t bytes) {
  tsl_report_start();
  tsl_epoch_hold(epoch);
  if (tsl_epoch_charge(epoch, bytes)) return true;
  tsl_epoch_drain(epoch, 1);
  return false;
}

// Limits are asked before the system: where one refuses there is nothing to undo. What heaps hold
// free becomes memory before the program is refused.
static void *large_alloc(size_t bytes, size_t alignment, bool *clean) {
  struct tsl_heap *heap = tsl_heap_current;
  size_t held_bytes = tsl_round_up(bytes == 0 ? 1 : bytes, TSL_UNIT_BYTES);
  uint32_t entry = heap->home->heap.tag | TSL_CODE_LARGE;
  if (heap->epoch != 0 && !large_charge(heap->epoch, held_bytes)) return no_memory();
  void *block = tsl_large_alloc(bytes, alignment, entry, clean);
  if (tsl_unlikely(block == NULL)) {
    tsl_memory_regain();
    block = tsl_large_alloc(bytes, alignment, entry, clean);
    if (block == NULL) tsl_refusal_report(bytes);
  }
  if (block != NULL) {
    tsl_large_list_add(heap->epoch, block);
    if (tsl_points_are_on()) tsl_sample_large(heap, block);
    tsl_report_at_large();
    return block;
  }
  if (heap->epoch != 0) {
    tsl_epoch_discharge(heap->epoch, held_bytes);
    tsl_epoch_drain(heap->epoch, 1);
  }
  return out_of_memory(heap->epoch);
}

void *tsl_malloc_large(size_t bytes, size_t alignment, bool *clean) {
  struct tsl_lease lease = {NULL};
  bool ignored;
  bool fits = bytes <= PTRDIFF_MAX && alignment <= PTRDIFF_MAX;
  if (!fits || (tsl_heap_current == &tsl_home_empty.heap && !tsl_thread_enter(&lease)))
    return out_of_memory(tsl_heap_current->epoch);
  void *block = large_alloc(bytes, alignment, clean == NULL ? &ignored : clean);
  tsl_thread_leave(&lease);
  return block;
}

void *tsl_calloc_large(size_t bytes) {
  bool clean;
  void *block = tsl_malloc_large(bytes, 1, &clean);
  if (block == NULL || clean) return block;
  return memset(block, 0, bytes);
}

// When two threads free the block, only one of them takes its map entry: the other one reports it.
// A helper is born before the block goes back: the C library takes memory for its thread, and would
// take it where the block was. One that was ending then may not have seen the block.
static void free_large(void *block) {
  if (((uintptr_t)block & (TSL_UNIT_BYTES - 1)) != 0) return tsl_misuse_interior(block);
  const struct tsl_span *span = tsl_span_at(tsl_unit_of(block));
  if (tsl_unlikely(tsl_epoch_waits(tsl_load_relaxed(&span->epoch))) && !tsl_large_is_spared(span))
    return tsl_misuse_late_free(block);
  if (tsl_exchange_relaxed(tsl_map_entry(tsl_unit_of(block)), 0) == 0)
    return tsl_misuse_twice(block);
  tsl_purge_call_helper(tsl_large_bytes(block));
  tsl_large_list_free(block);
  tsl_purge_call_helper(0);
}

static void free_zero(const void *block) {
  enum tsl_zero result = tsl_zero_free(block);
  if (result == TSL_ZERO_TWICE) tsl_misuse_twice(block);
  if (result == TSL_ZERO_INTERIOR) tsl_misuse_interior(block);
}

void tsl_free_outside(void *block) {
  if (block == NULL) return;
  if (tsl_zero_contains(block)) return free_zero(block);
  bool is_misaligned = ((uintptr_t)block & (TSL_BLOCK_ALIGNMENT - 1)) != 0;
  if (is_misaligned && tsl_map_lookup(block) != 0) return tsl_misuse_interior(block);
  tsl_misuse_foreign("free", block);
}

// Gives a thread that has only freed so far a home, where frees are gathered (remote.h) and counted
// (loose.h). False where they cannot be.
TSL_NOINLINE static bool free_join(uint32_t owner, unsigned class) {
  return class < TSL_GATHERS && owner != TSL_HEAP_SEALED && tsl_thread_join();
}

static void free_foreign(uint32_t entry, void *block) {
  uint32_t owner = tsl_entry_owner(entry);
  unsigned class = tsl_entry_class(entry);
  if (tsl_unlikely(tsl_heap_current == &tsl_home_empty.heap) && !free_join(owner, class))
    return tsl_remote_put(owner, class, block);
  struct tsl_home *home = tsl_heap_current->home;
  if (tsl_likely(class < TSL_GATHERS)) return tsl_remote_gather(home, owner, class, block);
  if (!tsl_home_adopt(home, owner, class, block)) tsl_remote_put(owner, class, block);
}

// What a free from outside of the block's epoch found.
enum outlived { FREED, FREED_SLOWLY, NO_BLOCK, FREED_TWICE };

// Whether frees of other threads wait to be collected.
TSL_ALWAYS_INLINE bool are_sent(const struct tsl_heap *heap) {
  return ((tsl_unit)tsl_load_relaxed(&heap->ready) | heap->pending) != 0;
}

// Whether the block was freed before is asked only where frees of other threads wait to be
// collected: else no line of the slab is read.
static bool was_sent(const struct tsl_heap *heap, unsigned class, struct tsl_position position,
                     const void *block) {
  return are_sent(heap) && tsl_visit_is_free(heap->number, class, position, block);
}

TSL_NOINLINE static void free_in_shared_full(struct tsl_heap *heap, void *block, size_t code) {
  tsl_heap_put_full(heap, block, code);
  tsl_scope_visit_shared_end(heap);
}

TSL_ALWAYS_INLINE void push_in_shared(struct tsl_heap *heap, void *block, size_t code) {
  tsl_scope_visit_shared(heap);
  TSL_PUSH_UNLESS_FULL(heap, block, code, free_in_shared_full(heap, block, code));
  tsl_scope_visit_shared_end(heap);
}

TSL_NOINLINE static void free_in_shared_after(struct tsl_heap *heap, void *block, size_t code) {
  unsigned class = tsl_code_class((unsigned)code);
  if (was_sent(heap, class, tsl_slab_position(class, block), block)) return tsl_misuse_twice(block);
  push_in_shared(heap, block, code);
}

// Unlike the fast path, a free from outside has the time to look whether it is a block.
TSL_ALWAYS_INLINE void free_in_shared(struct tsl_heap *heap, void *block, size_t code) {
  struct tsl_position position = tsl_slab_position(tsl_code_class((unsigned)code), block);
  if (tsl_unlikely(position.index < 0)) return tsl_misuse_interior(block);
  if (tsl_unlikely(are_sent(heap))) return free_in_shared_after(heap, block, code);
  push_in_shared(heap, block, code);
}

// While it is busy the thread calls nothing of the program's, and makes no helper.
static enum outlived put_quietly(struct tsl_heap *heap, void *block, size_t code,
                                 struct tsl_position position) {
  if (block == TSL_BIN(heap, tsl_code_offset(code))->head || tsl_slab_has(position)) {
    TSL_BIN(heap, tsl_code_offset(code))->room++;  // counted already
    return FREED_TWICE;
  }
  tsl_busy_begin();
  tsl_heap_put_full(heap, block, code);
  tsl_busy_end();
  return FREED_SLOWLY;
}

static enum outlived push_in_own(struct tsl_heap *heap, void *block, size_t code) {
  unsigned class = tsl_code_class((unsigned)code);
  struct tsl_position position = tsl_slab_position(class, block);
  if (position.index < 0) return NO_BLOCK;
  if (was_sent(heap, class, position, block)) return FREED_TWICE;
  TSL_PUSH_UNLESS_FULL(heap, block, code, put_quietly(heap, block, code, position));
  return FREED;
}

// In an open epoch with memory of its own. False when that is ending, and in the secure build:
// there a free reports more, and who ends the epoch must not wait for that.
static bool free_in_own(struct tsl_heap *heap, void *block, size_t code) {
  struct tsl_part *part = tsl_part_of(heap);
  if (TSL_SECURE || !tsl_scope_free_begin(part)) return false;
  enum outlived found = push_in_own(heap, block, code);
  bool is_told = tsl_scope_free_end(part);
  if (tsl_likely(found == FREED && !is_told)) return true;
  if (found == NO_BLOCK) tsl_misuse_interior(block);
  if (found == FREED_TWICE) tsl_misuse_twice(block);
  tsl_purge_call_helper(0);
  return true;
}

// The thread's part of another epoch in which a small block lies; NULL where it is not one.
static struct tsl_heap *find_part(const struct tsl_home *home, uint32_t entry) {
  uint32_t owner = tsl_entry_owner(entry);
  if (owner >= TSL_HEAP_NOBODY || (entry ^ tsl_entry(owner, 0)) >= TSL_CODES) return NULL;
  struct tsl_heap *heap = tsl_heap_at(owner);
  return heap->home == home && home != &tsl_home_empty ? heap : NULL;
}

// The next frees look first in the part of a shared epoch that was found last.
TSL_NOINLINE static bool free_outlived(struct tsl_home *home, void *block, uint32_t entry) {
  struct tsl_heap *heap = find_part(home, entry);
  if (heap == NULL) return false;
  unsigned code = tsl_entry_code(entry);
  if (!tsl_epoch_is_shared(tsl_epoch_at(heap->epoch))) return free_in_own(heap, block, code);
  home->outlived = heap;
  free_in_shared(heap, block, code);
  return true;
}

// A thread in an epoch frees the blocks of its home like its own.
TSL_ALWAYS_INLINE void free_at_home(struct tsl_heap *home, void *block, size_t code) {
  TSL_PUSH_UNLESS_FULL(home, block, code, tsl_heap_put_full(home, block, code));
}

TSL_NOINLINE static void free_beyond_cells(void *block, uint32_t entry) {
  struct tsl_home *home = tsl_heap_current->home;
  unsigned code = tsl_entry_code(entry);
  size_t home_code = entry ^ home->heap.tag;
  if (entry == 0) {
    tsl_free_outside(block);
  } else if (home_code < TSL_CODES) {
    free_at_home(&home->heap, block, home_code);
  } else if (home_code - TSL_CODE_VISITED < TSL_CODES) {
    tsl_home_put_visited(home, tsl_code_class(code), block);
  } else if (code == TSL_CODE_LARGE) {
    free_large(block);
  } else if (!free_outlived(home, block, entry)) {
    free_foreign(entry, block);
  }
}

static void free_anywhere_in_cells(struct tsl_heap *heap, tsl_cell_number number, void *block) {
  if (tsl_cells_are_newest(heap, block)) return tsl_cells_free_newest(heap, block);
  tsl_cells_free_older(heap, number, block);
}

// From outside of the epoch. False when that is not open, or the block is none that lives: the way
// of another thread's frees tells what it is.
static bool free_in_own_cell(struct tsl_heap *heap, tsl_cell_number number, void *block) {
  struct tsl_part *part = tsl_part_of(heap);
  if (!tsl_scope_free_begin(part)) return false;
  bool lives = tsl_cells_is_plain(tsl_load_relaxed(tsl_granule_at((uintptr_t)block)), block);
  tsl_busy_begin();
  if (lives) free_anywhere_in_cells(heap, number, block);
  tsl_busy_end();
  if (tsl_unlikely(tsl_scope_free_end(part))) tsl_purge_call_helper(0);
  return lives;
}

static bool has_part(const struct tsl_home *home, uint32_t owner) {
  const struct tsl_heap *heap = tsl_heap_at(owner);
  return heap->home == home && !tsl_heap_is_home(heap);
}

TSL_NOINLINE static void free_apart_in_cell(struct tsl_heap *heap, tsl_cell_number number,
                                            uint32_t owner, void *block) {
  bool is_own = owner != 0 && owner != heap->number && has_part(heap->home, owner);
  if (is_own && free_in_own_cell(tsl_heap_at(owner), number, block)) return;
  tsl_cells_free_older(heap, number, block);
}

TSL_NOINLINE static void free_in_older_cell(struct tsl_heap *heap, void *block, unsigned code) {
  tsl_cell_number number = tsl_cell_of(block, tsl_code_class(code));
  const struct tsl_cell *cell = tsl_cell_at(number);
  uint32_t owner = tsl_load_acquire(&cell->heap);  // pairs: cell-sealed
  bool is_sampled = tsl_load_relaxed(&cell->sample) != 0;
  if (owner == 0 && !is_sampled) return tsl_cells_free_sealed(number, block);
  if (tsl_unlikely(owner != heap->number || is_sampled))
    return free_apart_in_cell(heap, number, owner, block);
  tsl_cells_free_own(heap, number, block);
}

TSL_ALWAYS_INLINE void free_in_cell(struct tsl_heap *heap, void *block, unsigned code) {
  if (tsl_unlikely(!tsl_cells_are_newest(heap, block)))
    return free_in_older_cell(heap, block, code);
  tsl_cells_free_newest(heap, block);
}

// The warm paths of frees in young epochs, and of what outlives its shared epoch: they need no
// frame.
TSL_FAST void tsl_free_slow(void *block, struct tsl_heap *heap, uint32_t entry) {
  unsigned code = tsl_entry_code(entry);
  if (tsl_likely(tsl_code_is_cell(code))) return free_in_cell(heap, block, code);
  struct tsl_home *home = heap->home;
  entry ^= heap->tag;
  if (tsl_likely((entry ^ home->outlived->tag) < TSL_CODES))
    return free_in_shared(home->outlived, block, code);
  free_beyond_cells(block, entry);
}
