#include "epoch/seal.h"

#include "epoch/spare.h"
#include "heap/cells.h"
#include "heap/charge.h"
#include "heap/drained.h"
#include "heap/extent.h"
#include "heap/hold.h"
#include "heap/mixed.h"
#include "heap/part.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "heap/store.h"
#include "heap/valid.h"
#include "heap/warm.h"
#include "state/change.h"
#include "state/epoch.h"
#include "state/owner.h"
#include "tell/epochs.h"
#include "tell/heaps.h"
#include "tell/process.h"
#include "upkeep/remains.h"

// A part with so many slabs, 1 MiB or more, gives pages of sparse ones back as it is sealed.
enum {
  MANY_SLABS = 16,
  SPARSE_PARTS = 8,   // a slab is sparse in which at most one block in so many survives
  MOST_GIVING = 256,  // slabs of a part: each takes a few system calls
};

static size_t pages(size_t bytes) { return bytes >> TSL_CELL_PAGE_LOG2; }

static bool part_claim(struct tsl_part *part) {
  uint32_t unsealed = TSL_PART_UNSEALED;
  while (!tsl_cas_acquire(&part->sealing, &unsealed, TSL_PART_SEALING)) {  // pairs: heap-sealing
    if (unsealed != TSL_PART_UNSEALED) return false;
  }
  return true;
}

// PA2.
bool tsl_part_claim_seal(struct tsl_part *part) {
  return tsl_load_acquire(&part->heap.depth) == 0 &&  // pairs: scope-depth
         part_claim(part);
}

// By class. Of blocks that were kept the statistics know already.
struct survivor_counts {
  uint32_t found[TSL_CLASSES];
  uint32_t kept[TSL_CLASSES];
};

// Returns whether the cell was empty and went back.
static bool cell_seal(tsl_cell_number number, struct tsl_survivors *survivors,
                      struct survivor_counts *counts) {
  uint32_t objects = tsl_cell_count(number, tsl_cell_out(number), counts->found, counts->kept);
  tsl_cells_collect(number);
  if (tsl_cell_seal(number) == 0) {
    tsl_cells_give(number);
    return true;
  }
  survivors->objects += objects;
  survivors->pages += pages(tsl_sizeclasses[tsl_cells_class(number)].bytes);
  return false;
}

// Held until the bits of blocks that others have kept and freed are off (KE1): the seal has
// collected these frees.
static uint32_t slab_seal_held(struct tsl_slab *slab, uint32_t epoch) {
  uint32_t out = tsl_heap_seal_slab(slab, 1).out;
  if (tsl_unlikely(tsl_epoch_keeps(epoch))) tsl_slab_drop_kept(slab);
  return out;
}

static void heap_forget(struct tsl_heap *heap) {
  heap->cells = 0;
  heap->cells_oldest = 0;
  heap->cell_count = 0;
  heap->cell_pages = 0;
  heap->slabs = 0;
  heap->slab_count = 0;
  if (tsl_heap_has_store(heap) && tsl_store_counts(heap)) tsl_sub_relaxed(&heap->home->stores, 1);
  heap->store = &tsl_store_empty;
  heap->cell_class = 0;
}

// PA2: whoever claimed the part may seal it.
static bool may_seal(const struct tsl_part *part) {
  bool is_claimed = tsl_load_relaxed(&part->sealing) == TSL_PART_SEALING;
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(part->heap.epoch)->word);
  return is_claimed && tsl_epoch_state(word) != TSL_EPOCH_OPEN;
}

static void part_prepare(struct tsl_part *part) {
  tsl_mixed_retire(&part->heap);
  tsl_heap_close_ready(&part->heap);
  if (tsl_heap_has_store(&part->heap)) tsl_heap_lay_down(&part->heap);
  tsl_part_end_tallies(part);
  tsl_invariant(tsl_heap_valid(&part->heap));
}

static size_t bytes_of(const uint32_t *counts) {
  size_t bytes = 0;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    bytes += (size_t)counts[class] * tsl_sizeclasses[class].bytes;
  return bytes;
}

// Each cell and slab counts a block more, so that it stays although nothing lives in it (poison.h).
static void part_hold(const struct tsl_heap *heap) {
  for (tsl_cell_number number = heap->cells; number != 0; number = tsl_cell_at(number)->older)
    tsl_cell_at(number)->blocks++;
  for (tsl_unit unit = heap->slabs; unit != 0; unit = tsl_span_at(unit)->next)
    tsl_add_relaxed(&tsl_slab_at(unit)->left, 1);
}

// The end of a part, while it is under way.
struct part_end {
  uint32_t pieces;    // cells and slabs,
  uint32_t given;     // and of these, given back
  size_t held_pages;  // the same in pages
  size_t given_pages;
  size_t dead_bytes;  // in sparse slabs, not given back yet
  uint64_t began_ns;  // 0: it is not timed
};

static struct part_end part_end_begin(const struct tsl_heap *heap) {
  struct part_end end = {.pieces = heap->cell_count + heap->slab_count,
                         .held_pages = heap->cell_pages};
  if (end.pieces >= TSL_TIMED_PIECES) end.began_ns = tsl_os_now_ns();
  return end;
}

static void part_end_slab(struct part_end *end, size_t slab_pages, bool is_given) {
  end->held_pages += slab_pages;
  end->given += is_given;
  if (is_given) end->given_pages += slab_pages;
}

// In the child of a fork that has no home yet nobody counts.
static void part_end_tell(const struct part_end *end) {
  struct tsl_home *home = tsl_heap_current->home;
  if (home == &tsl_home_empty) return;
  struct tsl_end_tally *tally = &home->own->ends;
  tally->parts++;
  tally->pieces += end->pieces;
  tally->pieces_given += end->given;
  tally->held_pages += end->held_pages;
  tally->given_pages += end->given_pages;
  if (end->began_ns == 0) return;
  tally->timed_parts++;
  tally->timed_ns += tsl_os_now_ns() - end->began_ns;
}

// The same of a part that was one cell, by its own thread.
TSL_ALWAYS_INLINE void cell_end_tell(const struct tsl_heap *part) {
  struct tsl_end_tally *tally = &part->home->own->ends;
  tally->parts++;
  tally->pieces++;
  tally->pieces_given++;
  tally->held_pages += part->cell_pages;
  tally->given_pages += part->cell_pages;
}

static bool slab_is_sparse(const struct tsl_slab *slab) {
  return slab->out * SPARSE_PARTS <= tsl_sizeclasses[slab->class].capacity;
}

// Most dead pages of a slab with few survivors stay dead until the last of these is gone. Where
// such slabs are many, their pages would raise the process's peak before the delay is over.
static unsigned slabs_that_give(const struct tsl_heap *heap) {
  bool keeps = tsl_epoch_at(heap->epoch)->purge == TSLAB_PURGE_KEEP;
  return keeps || heap->slab_count < MANY_SLABS ? 0 : MOST_GIVING;
}

// The owner's, before the seal: nobody else gives pages of the slab.
static void slab_give_dead_pages(struct tsl_slab *slab) {
  tsl_report_purged(slab->class, tsl_slab_purge(slab, slab->out).bytes);
}

// In pages of a slab that few survivors hold, if all of them were touched.
static size_t slab_dead_bytes(const struct tsl_slab *slab) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  return slab_is_sparse(slab) ? sizeclass->slab_bytes - (size_t)slab->out * sizeclass->bytes : 0;
}

static bool slab_seal(struct tsl_slab *slab, uint32_t epoch, struct tsl_survivors *survivors,
                      uint32_t *counts) {
  unsigned class = slab->class;
  uint32_t out = slab_seal_held(slab, epoch);
  counts[class] += out;
  if (tsl_slab_count_down(slab) == TSL_REMOTE_EMPTY) return tsl_drained_give(slab);
  survivors->objects += out;
  survivors->pages += pages(tsl_sizeclasses[class].slab_bytes);
  return false;
}

static size_t slab_pages(tsl_unit unit) {
  return pages(tsl_sizeclasses[tsl_slab_at(unit)->class].slab_bytes);
}

// What of the cells' pages did not go to the survivors was given back.
static void cells_seal(const struct tsl_heap *heap, struct part_end *end,
                       struct tsl_survivors *survivors, struct survivor_counts *counts) {
  size_t before = survivors->pages;
  for (tsl_cell_number number = heap->cells, older; number != 0; number = older) {
    older = tsl_cell_at(number)->older;
    end->given += cell_seal(number, survivors, counts);
  }
  end->given_pages = heap->cell_pages - (survivors->pages - before);
}

static void slabs_seal(const struct tsl_heap *heap, struct part_end *end,
                       struct tsl_survivors *survivors, uint32_t *counts) {
  unsigned giving = slabs_that_give(heap);
  for (tsl_unit unit = heap->slabs, next; unit != 0; unit = next) {
    struct tsl_slab *slab = tsl_slab_at(unit);
    next = tsl_span_at(unit)->next;
    size_t in_slab = slab_pages(unit), dead_bytes = slab->out == 0 ? 0 : slab_dead_bytes(slab);
    if (dead_bytes != 0 && giving != 0) {
      slab_give_dead_pages(slab);
      dead_bytes = 0;
      giving--;
    }
    bool is_given = slab_seal(slab, heap->epoch, survivors, counts);
    part_end_slab(end, in_slab, is_given);
    if (!is_given) end->dead_bytes += dead_bytes;
  }
}

// Takes what is spared out of a part that ends. Returns how many pieces of it have left the epoch's
// count.
static uint32_t part_spare(struct tsl_heap *heap, bool waits, struct part_end *end) {
  if (tsl_likely(!tsl_epoch_keeps(heap->epoch))) return 0;
  struct tsl_spared spared = tsl_spare_part(heap, waits);
  end->held_pages += spared.slab_pages;
  if (spared.pieces != spared.given) tsl_remains_expect(heap->epoch, 0);
  return spared.given;
}

// A warm part is sealed like any other, but stays with its home.
static void part_leave(struct tsl_part *part, bool stays) {
  if (stays) {
    tsl_warm_keep(part);
    tsl_report_warm(part);
  } else {
    heap_forget(&part->heap);
  }
  tsl_change_reopen(part);
  tsl_store_release(&part->sealing, TSL_PART_SEALED);  // pairs: heap-sealing
  if (!stays) tsl_part_let_go(part);
}

// Whether all that the part has is its newest cell, and only its own thread freed there.
TSL_ALWAYS_INLINE bool has_one_cell(const struct tsl_heap *heap) {
  return heap->cell_count == 1 && !tsl_epoch_keeps(heap->epoch) &&
         tsl_load_relaxed(tsl_cell_remote(heap->cells)) == TSL_CELL_BIAS;
}

// Ends one that may become warm, in its only cell: there is nothing to spare or to give back.
TSL_ALWAYS_INLINE void part_rest(struct tsl_part *part) {
  struct tsl_heap *heap = &part->heap;
  tsl_mixed_clear(heap);
  tsl_heap_close_ready(heap);
  tsl_part_end_tallies(part);
  cell_end_tell(heap);
  tsl_report_rest(part);
  tsl_warm_keep(part);
  tsl_store_release(&part->sealing, TSL_PART_SEALED);  // pairs: heap-sealing
}

// Seals any other. Returns how many of its pieces have left the epoch's count.
static uint32_t part_seal(struct tsl_part *part, struct tsl_survivors *survivors) {
  struct tsl_heap *heap = &part->heap;
  uint32_t epoch = heap->epoch, spared = 0;
  struct survivor_counts counts = {{0}, {0}};
  tsl_drained_try_guarded();
  part_prepare(part);
  struct part_end end = part_end_begin(heap);
  if (tsl_unlikely(tsl_epoch_waits(epoch))) {
    spared = part_spare(heap, true, &end);
    part_hold(heap);
  }
  uint32_t pieces = heap->cell_count + heap->slab_count;
  if (pieces != 0) tsl_add_relaxed(&tsl_epoch_at(epoch)->undrained, pieces);
  cells_seal(heap, &end, survivors, &counts);
  slabs_seal(heap, &end, survivors, counts.found);
  if (end.given != pieces) {
    survivors->bytes += bytes_of(counts.found) + bytes_of(counts.kept);
    tsl_remains_expect(epoch, end.dead_bytes);
  }
  part_end_tell(&end);
  tsl_report_survivors(epoch, counts.found);
  tsl_report_sealed(part);
  part_leave(part, false);
  return end.given + spared;
}

// Whether its thread has freed all in it. Of an epoch that was released freed blocks wait, too
// (poison.h).
static bool may_rest(const struct tsl_part *part) {
  const struct tsl_heap *heap = &part->heap;
  if (!tsl_warm_may_keep(part) || !has_one_cell(heap) || tsl_epoch_waits(heap->epoch)) return false;
  return tsl_cell_shares_objects(heap->cell_freed) == heap->cell_blocks;
}

void tsl_part_seal(struct tsl_part *part, struct tsl_survivors *survivors) {
  uint32_t epoch = part->heap.epoch, ended = 0;
  tsl_invariant(tsl_epoch_valid(epoch) && may_seal(part));
  struct tsl_change change = tsl_change_begin(tsl_heap_current->home);
  tsl_change_shut(part);
  if (may_rest(part))
    part_rest(part);
  else
    ended = part_seal(part, survivors);
  tsl_change_end(change);
  tsl_epoch_drain(epoch, ended + 1);
}

// Gives back a slab with all that lives in it. False when its guard stays (drained.h).
static bool slab_release(struct tsl_slab *slab) {
  tsl_slab_clear_remote(slab);  // a fork may have come between bit and summary
  tsl_slab_wipe(slab);
  return tsl_drained_give(slab);
}

// Returns how many slabs have left the epoch's count.
static uint32_t slabs_release(const struct tsl_heap *heap, struct part_end *end) {
  uint32_t before = end->given;
  if (heap->slab_count != 0)
    tsl_add_relaxed(&tsl_epoch_at(heap->epoch)->undrained, heap->slab_count);
  for (tsl_unit unit = heap->slabs, next; unit != 0; unit = next) {
    next = tsl_span_at(unit)->next;
    size_t in_slab = slab_pages(unit);
    part_end_slab(end, in_slab, slab_release(tsl_slab_at(unit)));
  }
  return end->given - before;
}

// Releases any other. Returns how many of its pieces have left the epoch's count.
static uint32_t part_release(struct tsl_part *part, bool stays) {
  struct tsl_heap *heap = &part->heap;
  tsl_cell_number kept = stays ? heap->cells : 0;
  tsl_drained_try_guarded();
  part_prepare(part);
  struct part_end end = part_end_begin(heap);
  uint32_t ended = part_spare(heap, false, &end);
  stays = stays && kept == heap->cells;
  end.given = heap->cell_count;
  end.given_pages = heap->cell_pages;
  tsl_mixed_empty(heap, stays ? kept : 0);
  ended += slabs_release(heap, &end);
  part_end_tell(&end);
  tsl_report_sealed(part);
  part_leave(part, stays);
  return ended;
}

// The epoch drains last: it may retire, and its slot be another one's.
void tsl_part_release(struct tsl_part *part) {
  uint32_t epoch = part->heap.epoch, ended = 0;
  tsl_invariant(tsl_epoch_valid(epoch) && may_seal(part));
  struct tsl_change change = tsl_change_begin(tsl_heap_current->home);
  tsl_change_shut(part);
  bool stays = tsl_warm_may_keep(part);
  if (stays && has_one_cell(&part->heap))
    part_rest(part);
  else
    ended = part_release(part, stays);
  tsl_change_end(change);
  tsl_epoch_drain(epoch, ended + 1);
}

// Slabs in which objects lived stay, empty, where the thread may allocate next; the others go back.
// Returns how many of these have left the epoch's count.
static uint32_t slabs_renew(struct tsl_heap *heap, bool keep) {
  uint32_t ended = 0;
  tsl_unit unit = heap->slabs, next;
  heap->slabs = 0;
  heap->slab_count = 0;
  for (; unit != 0; unit = next) {
    struct tsl_slab *slab = tsl_slab_at(unit);
    next = tsl_span_at(unit)->next;
    if (keep && slab->out != 0) {
      tsl_heap_renew_slab(heap, slab);
    } else {
      tsl_add_relaxed(&tsl_epoch_at(heap->epoch)->undrained, 1);
      ended += slab_release(slab);
    }
  }
  return ended;
}

// A thread keeps memory only in its own part, and not where the next objects, which may be of other
// sizes, would find no room below a hard limit. In the secure build what is free is wiped, and goes
// back.
static bool keeps_memory(const struct tsl_heap *heap) {
  bool is_mine = heap->home == tsl_heap_current->home;
  return is_mine && !TSL_SECURE && !tsl_epoch_is_limited(heap->epoch);
}

static void newest_restart(struct tsl_heap *heap) {
  heap->home->own->cells.restarted++;
  tsl_mixed_restart(heap);
}

static void cell_move(tsl_cell_number number, uint32_t from, uint32_t to) {
  tsl_extent_add(to, number / TSL_UNIT_PAGES);
  tsl_store_relaxed(&tsl_cell_at(number)->epoch, to);
  tsl_epoch_move_charge(from, to, tsl_sizeclasses[tsl_cells_class(number)].bytes);
}

static void slab_move(tsl_unit unit, uint32_t from, uint32_t to) {
  tsl_extent_add(to, unit);
  tsl_store_relaxed(&tsl_span_at(unit)->epoch, to);
  tsl_epoch_move_charge(from, to, tsl_sizeclasses[tsl_slab_at(unit)->class].slab_bytes);
}

// Each piece is held, so that it stays.
static void pieces_move(struct tsl_heap *heap, uint32_t to) {
  struct tsl_survivors survivors = {0};
  struct survivor_counts counts = {{0}, {0}};
  struct part_end uncounted = {0};
  uint32_t pieces = heap->cell_count + heap->slab_count;
  if (pieces != 0) tsl_add_relaxed(&tsl_epoch_at(to)->undrained, pieces);
  part_hold(heap);
  for (tsl_cell_number number = heap->cells; number != 0; number = tsl_cell_at(number)->older)
    cell_move(number, heap->epoch, to);
  for (tsl_unit unit = heap->slabs; unit != 0; unit = tsl_span_at(unit)->next)
    slab_move(unit, heap->epoch, to);
  cells_seal(heap, &uncounted, &survivors, &counts);
  slabs_seal(heap, &uncounted, &survivors, counts.found);
  tsl_report_survivors(to, counts.found);
  heap->cells = 0;
  heap->slabs = 0;
}

void tsl_part_reset(struct tsl_part *part, uint32_t remnant) {
  struct tsl_heap *heap = &part->heap;
  bool keep = remnant == 0 && keeps_memory(heap);
  tsl_cell_number newest = keep && heap->cell_end != 0 ? heap->cells : 0;
  struct tsl_change change = tsl_change_begin(tsl_heap_current->home);
  tsl_change_shut(part);
  tsl_owner_act_for(heap->home);
  tsl_drained_try_guarded();
  part_prepare(part);
  struct part_end uncounted = {0};
  uint32_t ended = part_spare(heap, remnant != 0, &uncounted);
  if (remnant != 0) pieces_move(heap, remnant);
  if (newest != heap->cells) newest = 0;
  tsl_report_sealed(part);
  if (tsl_heap_has_store(heap)) tsl_store_renew(heap);
  tsl_part_renew(part);
  ended += slabs_renew(heap, keep);
  tsl_mixed_empty(heap, newest);
  if (newest != 0) newest_restart(heap);
  tsl_invariant(tsl_heap_valid(heap));
  tsl_owner_act_for(NULL);
  tsl_change_reopen(part);
  tsl_change_end(change);
  tsl_epoch_drain(heap->epoch, ended);
}
