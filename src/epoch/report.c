#include "epoch/report.h"

#include <string.h>

#include "base/options.h"
#include "epoch/epoch.h"
#include "epoch/remote.h"
#include "epoch/sample.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "os/os.h"

enum heap_state { NOBODYS, A_THREADS, POOLED };
enum told { NOT_TOLD, TOLD, HAS_SURVIVORS };

static uint32_t tried;                       // [remote]
static uint64_t homeless[TSL_CLASSES];       // [remote] frees by threads without a heap
static uint64_t began_ms;                    // [remote] 0: not known yet
static uint8_t label_told[TSL_MOST_LABELS];  // [remote]

#define PUT(row, field, value) tsl_store_relaxed(&(row)->field, (value))

// Others may add to the words meanwhile.
static void clear(void *start, size_t bytes) {
  for (uint64_t *word = start; bytes != 0; bytes -= sizeof *word) tsl_store_relaxed(word++, 0);
}

static void report_classes(void) {
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    struct tsl_classes_row *row = TSL_ROW(classes, class);
    if (row == NULL) return;
    PUT(row, bytes, tsl_sizeclasses[class].bytes);
    PUT(row, slab_bytes, tsl_sizeclasses[class].slab_bytes);
    PUT(row, capacity, tsl_sizeclasses[class].capacity);
  }
}

static void report_label(uint32_t label) {
  if (tsl_load_relaxed(&label_told[label]) != 0) return;
  struct tsl_labels_row *row = TSL_ROW(labels, label);
  if (row == NULL) return;
  uint64_t words[TSL_LABEL_BYTES / sizeof(uint64_t)] = {0};
  const char *text = tsl_label_text(label);
  memcpy(words, text, strnlen(text, TSL_LABEL_BYTES - 1));
  for (unsigned i = 0; i < TSL_LABEL_BYTES / sizeof *words; i++)
    tsl_store_relaxed((uint64_t *)(void *)row->text + i, words[i]);
  tsl_store_relaxed(&label_told[label], 1);
}

static size_t limit_of(size_t limit) { return limit == SIZE_MAX ? 0 : limit; }

// All but what others add to; false when there is no memory for its row. Readers skip a row without
// an id.
static bool report_epoch(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_epochs_row *row = TSL_ROW(epochs, slot);
  if (row == NULL) return false;
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  report_label(epoch->label);
  tsl_mirror_beat(epoch->opened_ms);
  PUT(row, parent, epoch->parent);
  PUT(row, label, epoch->label);
  PUT(row, state, (uint32_t)tsl_epoch_state(word));
  PUT(row, opened_ms, epoch->opened_ms);
  PUT(row, closed_ms, tsl_load_relaxed(&epoch->closed_ms));
  PUT(row, soft_limit_bytes, limit_of(epoch->soft_limit));
  PUT(row, hard_limit_bytes, limit_of(epoch->hard_limit));
  tsl_store_release(&row->id, tsl_epoch_id(slot, word));  // pairs: mirror
  return true;
}

static struct tsl_epochs_row *epoch_row(uint32_t slot) {
  if (!tsl_report_is_on()) return NULL;
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (slot != 0 && tsl_load_relaxed(&epoch->told) == NOT_TOLD && report_epoch(slot))
    tsl_store_relaxed(&epoch->told, TOLD);
  return TSL_ROW(epochs, slot);
}

static void report_held_epoch(uint32_t slot) {
  size_t held = tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes);
  struct tsl_epochs_row *row = held == 0 ? NULL : epoch_row(slot);
  if (row != NULL) PUT(row, held_bytes, held);
}

// The epochs that hold memory already, each kept from retiring meanwhile. Threads tell of
// themselves when they come by next.
static void report_epochs(void) {
  struct tsl_epochs_row *first = TSL_ROW(epochs, 0);
  if (first == NULL) return;
  PUT(first, opened_ms, tsl_os_now_ms());
  for (uint32_t slot = 1; slot <= tsl_load_relaxed(&tsl_region.last_epoch); slot++) {
    if (!tsl_epoch_hold(slot)) continue;
    report_held_epoch(slot);
    tsl_epoch_drain(slot, 1);
  }
}

struct large_counts {
  uint64_t objects, bytes, allocations;
};

static struct large_counts large_counts(void) {
  return (struct large_counts){tsl_load_relaxed(&tsl_counts.large_objects),
                               tsl_load_relaxed(&tsl_counts.large_bytes),
                               tsl_load_relaxed(&tsl_counts.large_allocations)};
}

// Threads may come at once: who writes last has looked at the counts after all others.
static void put_large(struct tsl_process_row *row) {
  struct large_counts told, now = large_counts();
  do {
    told = now;
    PUT(row, large_objects, told.objects);
    PUT(row, large_bytes, told.bytes);
    PUT(row, large_allocations, told.allocations);
    tsl_fence_seq_cst();  // pairs: told-last
    now = large_counts();
  } while (memcmp(&now, &told, sizeof now) != 0);
}

static void put_places(struct tsl_process_row *row) {
  size_t units = tsl_region.limit_units - tsl_region.first_unit;
  PUT(row, region_at, tsl_region.base);
  PUT(row, region_bytes, tsl_region.span_bytes);
  PUT(row, blocks_at, tsl_unit_address(tsl_region.first_unit));
  PUT(row, blocks_bytes, units << TSL_UNIT_LOG2);
}

static void report_process(void) {
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL) return;
  PUT(row, open_bytes, tsl_units_open() << TSL_UNIT_LOG2);
  PUT(row, free_bytes, tsl_units_free() << TSL_UNIT_LOG2);
  PUT(row, dirty_bytes, tsl_units_dirty() << TSL_UNIT_LOG2);
  PUT(row, cached_bytes, tsl_unit_cache_units() << TSL_UNIT_LOG2);
  put_large(row);
  put_places(row);
  PUT(row, purges, tsl_load_relaxed(&tsl_counts.purges));
  PUT(row, purged_bytes, tsl_load_relaxed(&tsl_counts.purged_bytes));
  PUT(row, purges_refused, tsl_load_relaxed(&tsl_counts.purges_refused));
  PUT(row, limits_refused, tsl_load_relaxed(&tsl_counts.limits_refused));
  PUT(row, memory_refused, tsl_load_relaxed(&tsl_counts.memory_refused));
}

// As large blocks are told.
static void put_homeless(struct tsl_bins_row *row, unsigned class) {
  uint64_t told, now = tsl_load_relaxed(&homeless[class]);
  do {
    told = now;
    PUT(row, sent[class], told);
    tsl_fence_seq_cst();  // pairs: told-last
    now = tsl_load_relaxed(&homeless[class]);
  } while (now != told);
}

static void report_homeless(void) {
  struct tsl_bins_row *row = TSL_ROW(bins, 0);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) put_homeless(row, class);
}

// The table of heaps comes last: with its first row the others begin to report. Without memory for
// it the next tick tries again.
void tsl_report_start(void) {
  if (tsl_option(stats) == 0 || tsl_load_relaxed(&tried) != 0) return;
  if (tsl_exchange_relaxed(&tried, 1) != 0 || !tsl_mirror_open(&tsl_rows_layout)) return;
  report_classes();
  report_label(TSL_LABEL_DEFAULT);
  report_process();
  if (TSL_ROW(bins, 0) == NULL || TSL_ROW(heaps, 0) == NULL) {
    tsl_store_relaxed(&tried, 0);
  } else {
    report_homeless();
    report_epochs();
  }
}

static bool is_old_enough(uint64_t now_ms) {
  if (tsl_load_relaxed(&began_ms) == 0) tsl_store_relaxed(&began_ms, now_ms);
  return tsl_option(sample_bytes) != 0 ||
         now_ms - tsl_load_relaxed(&began_ms) >= tsl_option(stats_delay_ms);
}

void tsl_report_tick(struct tsl_heap *home) {
  uint64_t now_ms = tsl_os_now_ms();
  if (now_ms == home->told_ms) return;
  home->told_ms = now_ms;
  if (!tsl_report_is_on() && is_old_enough(now_ms)) tsl_report_start();
  if (!tsl_report_is_on()) return;
  tsl_report_heap(home);
  report_process();
  tsl_sample_follow();
  tsl_mirror_beat(now_ms);
}

// The calling thread's own home says who it is.
static void put_home(struct tsl_heaps_row *row, struct tsl_heap *home) {
  if (home->thread == 0 && home == tsl_heap_current->home) home->thread = tsl_os_thread();
  PUT(row, thread, home->thread);
  PUT(row, state, home->thread != 0 ? A_THREADS : POOLED);
  PUT(row, cached_units, home->unit_count);
}

static void put_part(struct tsl_heaps_row *row, const struct tsl_heap *part) {
  PUT(row, epoch, part->epoch);
  PUT(row, home, part->home->number);
  PUT(row, scopes, tsl_load_relaxed(&part->depth));
  if (part->home != part) PUT(row, state, A_THREADS);
}

// A home that a thread took from the pool has to say whose it is now.
static bool is_introduced(const struct tsl_heap *heap, const struct tsl_heaps_row *row) {
  return row->state != NOBODYS && (heap->home != heap || heap->thread != 0);
}

// Readers pass over a heap that does not say whose it is.
static struct tsl_heaps_row *heap_row(struct tsl_heap *heap) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, heap->number) : NULL;
  if (row == NULL || tsl_likely(is_introduced(heap, row))) return row;
  put_part(row, heap);
  if (heap->home == heap) put_home(row, heap);
  return row;
}

static struct tsl_bins_row *bins_row(struct tsl_heap *heap) {
  return heap_row(heap) == NULL ? NULL : TSL_ROW(bins, heap->number);
}

static void put_allocations(struct tsl_bins_row *row, const struct tsl_heap *heap, unsigned class) {
  uint64_t at_hand =
      tsl_bin_until(&heap->bins[class]) + tsl_stock_blocks(&heap->store->stocks[class]);
  PUT(row, allocations[class], heap->store->allocations[class] - at_hand);
}

static void put_bin(struct tsl_bins_row *row, const struct tsl_heap *heap, unsigned class) {
  const struct tsl_tally *tally = &heap->store->tallies[class];
  put_allocations(row, heap, class);
  PUT(row, out[class], tsl_tally_out(tally));
  PUT(row, hot[class], (uint32_t)tsl_heap_hot_blocks(heap, class));
  PUT(row, sent[class], tally->sent);
  PUT(row, taken[class], tally->taken);
  PUT(row, slabs[class], tally->slabs);
  PUT(row, opened[class], tally->opened);
  PUT(row, refills[class], tally->refills);
  PUT(row, returned[class], tsl_tally_returned(tally));
}

static void put_cell_tally(struct tsl_bins_row *row, const struct tsl_cell_tally *tally) {
  PUT(row, cells_taken, tally->taken);
  PUT(row, cells_restarted, tally->restarted);
  PUT(row, ended_objects, tally->ended_objects);
  PUT(row, ended_bytes, tally->ended_granules << TSL_GRANULE_LOG2);
}

void tsl_report_sent(struct tsl_heap *home, unsigned class) {
  struct tsl_bins_row *row = bins_row(home);
  if (row != NULL) PUT(row, sent[class], home->store->tallies[class].sent);
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

static void put_cells(struct tsl_heaps_row *row, struct tsl_heap *part) {
  uint64_t freed = part->cell_freed;
  size_t granules = (part->cell_next - part->cell_start) >> TSL_GRANULE_LOG2;
  PUT(row, cut_objects, part->cut_objects + part->cell_blocks);
  PUT(row, cut_bytes, (part->cut_granules + granules) << TSL_GRANULE_LOG2);
  PUT(row, freed_objects, part->freed_objects + tsl_cell_shares_objects(freed));
  PUT(row, freed_bytes,
      (part->freed_granules + tsl_cell_shares_granules(freed)) << TSL_GRANULE_LOG2);
  PUT(row, cell_bytes, (uint64_t)part->cell_pages << TSL_CELL_PAGE_LOG2);
  part->told_granules = part->cut_granules;
  part->told_freed_granules = part->freed_granules;
}

// A process that takes memory and then waits says how much that is, too.
static void report_growth(void) {
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  size_t open_bytes = tsl_units_open() << TSL_UNIT_LOG2;
  if (row != NULL && tsl_load_relaxed(&row->open_bytes) != open_bytes) report_process();
}

void tsl_report_cells(struct tsl_heap *part) {
  struct tsl_heaps_row *row = heap_row(part);
  if (row == NULL) return;
  PUT(row, scopes, tsl_load_relaxed(&part->depth));
  put_cells(row, part);
}

static void put_heap(struct tsl_heaps_row *row, struct tsl_heap *heap) {
  report_growth();
  heap->told_next = heap->cell_next;
  heap->told_freed = heap->cell_freed;
  if (heap->home == heap) put_home(row, heap);
  put_cells(row, heap);
  if (!tsl_heap_has_store(heap)) return;
  struct tsl_bins_row *bins = TSL_ROW(bins, heap->number);
  if (bins == NULL) return;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) put_bin(bins, heap, class);
  if (heap->home == heap) put_cell_tally(bins, &heap->store->cells);
}

void tsl_report_heap(struct tsl_heap *heap) {
  struct tsl_heaps_row *row = heap_row(heap);
  if (row == NULL) return;
  PUT(row, scopes, tsl_load_relaxed(&heap->depth));
  put_heap(row, heap);
}

void tsl_report_left(struct tsl_heap *heap) {
  struct tsl_heaps_row *row = heap_row(heap);
  if (row == NULL) return;
  PUT(row, scopes, tsl_load_relaxed(&heap->depth) - 1);
  put_heap(row, heap);
}

// What the row's last part left there, and late frees added to it, is nobody's.
void tsl_report_part(const struct tsl_heap *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->number) : NULL;
  if (row == NULL) return;
  clear(&row->cut_objects, sizeof *row - offsetof(struct tsl_heaps_row, cut_objects));
  put_part(row, part);
}

void tsl_report_scopes(const struct tsl_heap *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->number) : NULL;
  if (row != NULL) PUT(row, scopes, tsl_load_relaxed(&part->depth));
}

// What a part had counted is its heir's from now on (tally.h).
static void report_heir(struct tsl_heap *home, const struct tsl_heap *part) {
  struct tsl_bins_row *row = home == &tsl_heap_empty ? NULL : bins_row(home);
  if (row == NULL) return;
  put_cell_tally(row, &home->store->cells);
  for (unsigned class = 0; class < TSL_CLASSES && tsl_heap_has_store(part); class += 1)
    if (part->store->tallies[class].refills != 0) put_bin(row, home, class);
}

void tsl_report_sealed(const struct tsl_heap *part) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part->number) : NULL;
  if (row == NULL) return;
  PUT(row, state, NOBODYS);
  struct tsl_bins_row *bins = tsl_heap_has_store(part) ? TSL_ROW(bins, part->number) : NULL;
  if (bins != NULL) clear(bins, sizeof *bins);
  report_heir(tsl_heap_current->home, part);
}

void tsl_report_held(uint32_t slot, size_t bytes) {
  struct tsl_epochs_row *row = epoch_row(slot);
  if (row != NULL) PUT(row, held_bytes, bytes);
}

void tsl_report_large(uint32_t slot) {
  struct tsl_epochs_row *row = epoch_row(slot);
  if (row == NULL) return;
  PUT(row, large_objects, tsl_epoch_at(slot)->large_blocks);
  PUT(row, large_bytes, tsl_epoch_at(slot)->large_bytes);
}

void tsl_report_all_large(void) {
  struct tsl_process_row *row = tsl_report_is_on() ? TSL_ROW(process, 0) : NULL;
  if (row != NULL) put_large(row);
}

static struct tsl_epochs_row *told_row(uint32_t slot) {
  bool is_told = tsl_load_relaxed(&tsl_epoch_at(slot)->told) != NOT_TOLD;
  return is_told && tsl_report_is_on() ? TSL_ROW(epochs, slot) : NULL;
}

void tsl_report_ended(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_epochs_row *row = told_row(slot);
  if (row == NULL) return;
  tsl_mirror_beat(tsl_load_relaxed(&epoch->closed_ms));
  PUT(row, held_bytes, tsl_load_relaxed(&epoch->held_bytes));
  PUT(row, closed_ms, tsl_load_relaxed(&epoch->closed_ms));
  PUT(row, state, (uint32_t)tsl_epoch_state(tsl_load_relaxed(&epoch->word)));
}

void tsl_report_over(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct tsl_epochs_row *row = told_row(slot);
  uint8_t told = epoch->told;
  tsl_store_relaxed(&epoch->told, NOT_TOLD);
  if (row == NULL) return;
  PUT(row, id, 0);
  PUT(row, held_bytes, 0);
  if (told == HAS_SURVIVORS) clear(row->survivors, sizeof row->survivors);
}

void tsl_report_survivors(uint32_t slot, const uint32_t *counts) {
  uint32_t any = 0;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) any |= counts[class];
  struct tsl_epochs_row *row = any == 0 ? NULL : epoch_row(slot);
  if (row == NULL) return;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    if (counts[class] == 0) continue;
    tsl_store_relaxed(&tsl_epoch_at(slot)->told, HAS_SURVIVORS);
    tsl_add_relaxed(&row->survivors[class], counts[class]);
  }
}

// It may come before the seal that counted the block tells of it.
void tsl_report_survivor_freed(uint32_t slot, unsigned class) {
  struct tsl_epochs_row *row = told_row(slot);
  if (row == NULL || class >= TSL_CLASSES) return;
  tsl_store_relaxed(&tsl_epoch_at(slot)->told, HAS_SURVIVORS);
  tsl_sub_relaxed(&row->survivors[class], 1);
}

void tsl_report_away(uint32_t part, unsigned class) {
  struct tsl_heaps_row *row = tsl_report_is_on() ? TSL_ROW(heaps, part) : NULL;
  if (row == NULL) return;
  tsl_add_relaxed(&row->away_objects, 1);
  tsl_add_relaxed(&row->away_bytes, tsl_sizeclasses[class].bytes);
}

void tsl_report_homeless(unsigned class) {
  tsl_add_relaxed(&homeless[class], 1);
  struct tsl_bins_row *row = tsl_report_is_on() ? TSL_ROW(bins, 0) : NULL;
  if (row != NULL) put_homeless(row, class);
}

__attribute__((destructor)) static void report_end(void) { tsl_mirror_close(); }

// Every heap is told of anew, when its thread comes by.
static void forget_heaps(void) {
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = tsl_heap_at(number);
    heap->told_next = TSL_NEVER_TOLD;
    heap->told_granules = 0;
    heap->told_freed_granules = 0;
    heap->told_ms = 0;
    heap->thread = 0;
  }
}

void tsl_report_after_fork(void) {
  tsl_mirror_after_fork();
  tsl_store_relaxed(&tried, 0);
  tsl_store_relaxed(&began_ms, 0);
  memset(label_told, 0, sizeof label_told);
  forget_heaps();
  for (uint32_t slot = 1; slot <= tsl_region.last_epoch; slot++)
    tsl_epoch_at(slot)->told = NOT_TOLD;
}
