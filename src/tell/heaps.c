#include "tell/heaps.h"

#include <stddef.h>

#include "state/bin.h"
#include "state/owner.h"
#include "tell/process.h"

static uint64_t homeless[TSL_CLASSES];  // [remote] frees by threads without a heap

// Writes until the count is what it wrote, as put_large does (process.c).
static void put_homeless(struct tsl_bins_row *row, unsigned class) {
  uint64_t told, now = tsl_load_relaxed(&homeless[class]);
  do {
    told = now;
    TSL_PUT(row, sent[class], told);
    tsl_fence_seq_cst();  // pairs: told-last
    now = tsl_load_relaxed(&homeless[class]);
  } while (now != told);
}

void tsl_report_all_homeless(void) {
  struct tsl_bins_row *row = TSL_ROW(bins, 0);
  for (unsigned class = 0; class < TSL_CLASSES && row != NULL; class += 1) put_homeless(row, class);
}

void tsl_report_homeless(unsigned class) {
  tsl_add_relaxed(&homeless[class], 1);
  struct tsl_bins_row *row = tsl_report_is_on() ? TSL_ROW(bins, 0) : NULL;
  if (row != NULL) put_homeless(row, class);
}

// Only the thread itself can say its number: another one that reports the home leaves it at 0.
static void put_home(struct tsl_heaps_row *row, struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  if (home->thread == 0 && home == tsl_heap_current->home) home->thread = tsl_os_thread();
  TSL_PUT(row, thread, home->thread);
  TSL_PUT(row, state, home->thread != 0 ? TSL_HEAPS_A_THREADS : TSL_HEAPS_POOLED);
  TSL_PUT(row, cached_units, tsl_load_relaxed(&home->unit_count));
}

static void put_owner(struct tsl_heaps_row *row, const struct tsl_heap *heap) {
  TSL_PUT(row, epoch, heap->epoch);
  TSL_PUT(row, home, heap->home->heap.number);
  TSL_PUT(row, scopes, tsl_load_relaxed(&heap->depth));
  if (!tsl_heap_is_home(heap)) TSL_PUT(row, state, TSL_HEAPS_A_THREADS);
}

// False for a heap without a row, and for a home that a thread took from the pool and did not
// report yet.
static bool is_introduced(const struct tsl_heap *heap, const struct tsl_heaps_row *row) {
  return row->state != TSL_HEAPS_NOBODYS && (!tsl_heap_is_home(heap) || heap->home->thread != 0);
}

// The heap's row, with its owner in it: readers pass over rows without an owner.
TSL_ALWAYS_INLINE struct tsl_heaps_row *heap_row(struct tsl_heap *heap) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, heap->number) : NULL;
  if (row == NULL || tsl_likely(is_introduced(heap, row))) return row;
  put_owner(row, heap);
  if (tsl_heap_is_home(heap)) put_home(row, heap->home);
  return row;
}

static struct tsl_bins_row *bins_row(struct tsl_heap *heap) {
  return heap_row(heap) == NULL ? NULL : TSL_ROW(bins, heap->number);
}

static void put_allocations(struct tsl_bins_row *row, const struct tsl_heap *heap, unsigned class) {
  uint64_t at_hand =
      tsl_bin_ahead(&heap->bins[class]) + tsl_stock_blocks(&heap->store->stocks[class]);
  TSL_PUT(row, allocations[class], heap->store->allocations[class] - at_hand);
}

static void put_bin(struct tsl_bins_row *row, const struct tsl_heap *heap, unsigned class) {
  const struct tsl_tally *tally = &heap->store->tallies[class];
  put_allocations(row, heap, class);
  TSL_PUT(row, out[class], tsl_tally_out(tally));
  TSL_PUT(row, hot[class], (uint32_t)tsl_heap_hot_blocks(heap, class));
  TSL_PUT(row, sent[class], tally->sent);
  TSL_PUT(row, taken[class], tally->taken);
  TSL_PUT(row, slabs[class], tally->slabs);
  TSL_PUT(row, opened[class], tally->opened);
  TSL_PUT(row, refills[class], tally->refills);
  TSL_PUT(row, returned[class], tsl_tally_returned(tally));
}

// False for a class of which a part never had a block. A home also has those that it adopted.
static bool has_dealt_in(const struct tsl_heap *heap, unsigned class) {
  return tsl_heap_is_home(heap) || heap->store->tallies[class].refills != 0;
}

TSL_ALWAYS_INLINE void put_ended(struct tsl_bins_row *row, const struct tsl_cell_tally *tally) {
  TSL_PUT(row, ended_objects, tally->ended_objects);
  TSL_PUT(row, ended_bytes, tally->ended_granules << TSL_GRANULE_LOG2);
}

static void put_cell_tally(struct tsl_bins_row *row, const struct tsl_cell_tally *tally) {
  TSL_PUT(row, cells_taken, tally->taken);
  TSL_PUT(row, cells_restarted, tally->restarted);
  put_ended(row, tally);
}

static void put_unit_tally(struct tsl_bins_row *row, const struct tsl_unit_tally *tally) {
  TSL_PUT(row, units_kept, tally->kept);
  TSL_PUT(row, units_shared, tally->shared);
  TSL_PUT(row, units_reused, tally->reused);
  TSL_PUT(row, units_fresh, tally->fresh);
}

static void put_end_tally(struct tsl_bins_row *row, const struct tsl_end_tally *tally) {
  TSL_PUT(row, closes, tally->closes);
  TSL_PUT(row, releases, tally->releases);
  TSL_PUT(row, end_parts, tally->parts);
  TSL_PUT(row, end_pieces, tally->pieces);
  TSL_PUT(row, end_pieces_given, tally->pieces_given);
  TSL_PUT(row, end_bytes, tally->held_pages << TSL_CELL_PAGE_LOG2);
  TSL_PUT(row, end_bytes_given, tally->given_pages << TSL_CELL_PAGE_LOG2);
  TSL_PUT(row, end_timed_parts, tally->timed_parts);
  TSL_PUT(row, end_timed_ns, tally->timed_ns);
}

// What a home counts beside the classes.
static void put_home_tallies(struct tsl_bins_row *row, const struct tsl_home_store *own) {
  put_cell_tally(row, &own->cells);
  put_unit_tally(row, &own->taken);
  put_end_tally(row, &own->ends);
}

void tsl_report_ends(struct tsl_home *home) {
  struct tsl_bins_row *row = bins_row(&home->heap);
  if (row != NULL) put_end_tally(row, &home->own->ends);
}

void tsl_report_sent(struct tsl_home *home, unsigned class) {
  struct tsl_bins_row *row = bins_row(&home->heap);
  if (row != NULL) TSL_PUT(row, sent[class], home->heap.store->tallies[class].sent);
}

void tsl_report_allocations(struct tsl_heap *heap, unsigned class) {
  if (!tsl_report_is_on() || class >= TSL_CLASSES) return;
  struct tsl_bins_row *row = bins_row(heap);
  if (row != NULL) put_allocations(row, heap, class);
}

void tsl_report_bin(struct tsl_heap *heap, unsigned class) {
  if (!tsl_report_is_on() || class >= TSL_CLASSES) return;
  struct tsl_bins_row *row = bins_row(heap);
  if (row != NULL) put_bin(row, heap, class);
}

TSL_ALWAYS_INLINE void put_cells(struct tsl_heaps_row *row, struct tsl_heap *part) {
  tsl_assert(tsl_owner_is_me(part));
  uint64_t recut = part->cell_recut, freed = part->cell_freed + recut;
  size_t granules = (part->cell_next - part->cell_start) >> TSL_GRANULE_LOG2;
  granules += tsl_cell_shares_granules(recut);
  TSL_PUT(row, cut_objects, part->cut_objects + part->cell_blocks + tsl_cell_shares_objects(recut));
  TSL_PUT(row, cut_bytes, (part->cut_granules + granules) << TSL_GRANULE_LOG2);
  TSL_PUT(row, freed_objects, part->freed_objects + tsl_cell_shares_objects(freed));
  TSL_PUT(row, freed_bytes,
          (part->freed_granules + tsl_cell_shares_granules(freed)) << TSL_GRANULE_LOG2);
  TSL_PUT(row, cell_bytes, (uint64_t)part->cell_pages << TSL_CELL_PAGE_LOG2);
  part->told_granules = (uint32_t)part->cut_granules;
  part->told_freed_granules = (uint32_t)part->freed_granules;
}

void tsl_report_cells(struct tsl_heap *part) {
  struct tsl_heaps_row *row = heap_row(part);
  if (row == NULL) return;
  TSL_PUT(row, scopes, tsl_load_relaxed(&part->depth));
  put_cells(row, part);
}

// Classes that a part never used keep the zeros of their rows: a part of few classes writes few
// lines.
static void put_bins(struct tsl_heap *heap) {
  tsl_report_growth();
  struct tsl_bins_row *bins = TSL_ROW(bins, heap->number);
  if (bins == NULL) return;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    if (has_dealt_in(heap, class)) put_bin(bins, heap, class);
  if (tsl_heap_is_home(heap)) put_home_tallies(bins, heap->home->own);
}

TSL_ALWAYS_INLINE void put_heap(struct tsl_heaps_row *row, struct tsl_heap *heap) {
  if (tsl_heap_is_home(heap)) put_home(row, heap->home);
  put_cells(row, heap);
  if (tsl_heap_has_store(heap)) put_bins(heap);
}

void tsl_report_heap(struct tsl_heap *heap) {
  struct tsl_heaps_row *row = heap_row(heap);
  if (row == NULL) return;
  TSL_PUT(row, scopes, tsl_load_relaxed(&heap->depth));
  put_heap(row, heap);
}

void tsl_report_left(struct tsl_heap *heap) {
  struct tsl_heaps_row *row = heap_row(heap);
  if (row == NULL) return;
  TSL_PUT(row, scopes, tsl_load_relaxed(&heap->depth) - 1);
  put_heap(row, heap);
}

// Clears what the row's last part, and late frees of its blocks, left there.
void tsl_report_part(const struct tsl_part *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->heap.number) : NULL;
  if (row == NULL) return;
  tsl_rows_clear(&row->cut_objects, sizeof *row - offsetof(struct tsl_heaps_row, cut_objects));
  struct tsl_bins_row *bins =
      tsl_heap_has_store(&part->heap) ? TSL_ROW(bins, part->heap.number) : NULL;
  if (bins != NULL) tsl_rows_clear(bins->away, sizeof bins->away);
  put_owner(row, &part->heap);
}

void tsl_report_scopes(const struct tsl_part *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->heap.number) : NULL;
  if (row != NULL) TSL_PUT(row, scopes, tsl_load_relaxed(&part->heap.depth));
}

// Writes the counts of the home to which those of the part went.
static void report_heir(struct tsl_home *home, const struct tsl_heap *part) {
  struct tsl_bins_row *row = home == &tsl_home_empty ? NULL : bins_row(&home->heap);
  if (row == NULL) return;
  put_cell_tally(row, &home->own->cells);
  put_end_tally(row, &home->own->ends);
  for (unsigned class = 0; class < TSL_CLASSES && tsl_heap_has_store(part); class += 1)
    if (has_dealt_in(part, class)) put_bin(row, &home->heap, class);
}

// The row is nobody's before the home's gets the counts: a reader in between misses them; in the
// other order it would count them twice.
void tsl_report_sealed(const struct tsl_part *sealed) {
  const struct tsl_heap *part = &sealed->heap;
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->number) : NULL;
  if (row == NULL) return;
  TSL_PUT(row, state, TSL_HEAPS_NOBODYS);
  struct tsl_bins_row *bins = tsl_heap_has_store(part) ? TSL_ROW(bins, part->number) : NULL;
  if (bins != NULL) tsl_rows_clear(bins, sizeof *bins);
  report_heir(tsl_heap_current->home, part);
}

void tsl_report_rest(const struct tsl_part *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->heap.number) : NULL;
  if (row == NULL) return;
  TSL_PUT(row, state, TSL_HEAPS_NOBODYS);
  if (tsl_unlikely(tsl_load_relaxed(&row->away_objects) != 0)) tsl_report_warm(part);
  struct tsl_home *home = part->heap.home;
  struct tsl_bins_row *bins =
      home->thread != 0 ? TSL_ROW(bins, home->heap.number) : bins_row(&home->heap);
  if (bins == NULL) return;
  put_ended(bins, &home->own->cells);
}

void tsl_report_warm(const struct tsl_part *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->heap.number) : NULL;
  if (row == NULL) return;
  TSL_PUT(row, away_objects, 0);
  TSL_PUT(row, away_bytes, 0);
}

static void add_away(uint32_t part, unsigned class, uint32_t blocks) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part) : NULL;
  if (row == NULL) return;
  tsl_add_relaxed(&row->away_objects, blocks);
  tsl_add_relaxed(&row->away_bytes, (uint64_t)blocks * tsl_sizeclasses[class].bytes);
}

void tsl_report_away(uint32_t part, unsigned class) { add_away(part, class, 1); }

void tsl_report_away_of_slab(uint32_t part, unsigned class, uint32_t blocks) {
  add_away(part, class, blocks);
  struct tsl_bins_row *row = tsl_report_is_on() ? TSL_ROW(bins, part) : NULL;
  if (row != NULL) tsl_add_relaxed(&row->away[class], blocks);
}

// Each heap is reported again when its thread reaches a slow path.
void tsl_report_forget_heaps(void) {
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = tsl_heap_at(number);
    heap->told_granules = 0;
    heap->told_freed_granules = 0;
    heap->leaves = 1;
    if (!tsl_heap_is_home(heap) && tsl_heap_is_ready(heap)) tsl_part_of(heap)->leave_pace = 1;
    if (!tsl_heap_is_home(heap)) continue;
    heap->home->told_ms = 0;
    heap->home->thread = 0;
  }
}
