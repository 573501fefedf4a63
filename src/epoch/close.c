#include "epoch/close.h"

#include <errno.h>

#include "epoch/deferred.h"
#include "epoch/large_list.h"
#include "epoch/open.h"
#include "epoch/poison.h"
#include "epoch/scope.h"
#include "epoch/spare.h"
#include "epoch/sweep.h"
#include "heap/freed.h"
#include "heap/hold.h"
#include "heap/home_units.h"
#include "heap/mixed.h"
#include "heap/part.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "memory/purge.h"
#include "state/change.h"
#include "state/history.h"
#include "tell/epochs.h"
#include "tell/heaps.h"
#include "tell/watch.h"
#include "upkeep/collect.h"
#include "upkeep/remains.h"

enum {
  REST_ATTEMPTS = 16,
  REST_SLABS = 64,   // of a part that keeps more than one request at a time needs
  REST_PAGES = 64,   // of cells, likewise
  REST_CLOSES = 64,  // at most, from one look at them to the next
};

#define MOST_CELL_BYTES (tsl_sizeclasses[TSL_CELL_64K].bytes)

static bool others_are_in(const struct tsl_home *mine, uint32_t number) {
  for (; number != 0; number = tsl_load_relaxed(&tsl_part_at(number)->epoch_next)) {
    if (tsl_heap_at(number)->home != mine) return true;
  }
  return false;
}

// Ends the list of the epoch's heaps, so that no thread joins it. Seals each heap in which no
// thread is; the others are sealed when their thread leaves.
static void end_heaps(struct tsl_epoch *epoch, struct tsl_survivors *survivors) {
  uint32_t first = tsl_exchange_acq_rel(&epoch->heaps, TSL_EPOCH_ENDED);  // pairs: epoch-heaps
  if (others_are_in(tsl_heap_current->home, first)) tsl_scope_barrier();
  for (uint32_t number = first, next; number != 0; number = next) {
    struct tsl_part *part = tsl_part_at(number);
    next = tsl_load_relaxed(&part->epoch_next);
    bool is_mine = part->heap.home == tsl_heap_current->home;
    if (is_mine) {
      tsl_assert(part->frees == 0);
      tsl_store_relaxed(&part->holds, 1);
    } else {
      tsl_scope_await_frees(part);
    }
    if (!tsl_scope_end_part(part, survivors)) {
      tsl_report_scopes(part);
      tsl_add_relaxed(&epoch->unsealed, 1);
    }
    if (!is_mine) tsl_part_let_go(part);
  }
}

// What the last step of an end needs. It is read before, because the record may be another epoch's
// by then.
struct ending {
  uint32_t slot;
  uint32_t place;
  uint8_t purge;
  bool calls_helper;
  size_t held_bytes;
  uint32_t warm_before;  // parts of the thread
};

// A child ends within the end of its parent, which calls the helper for all. Where much memory goes
// back, the helper is there before that, and this thread need not purge (HE1).
static struct ending end_begin(uint32_t slot, bool is_child) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  size_t held_bytes = tsl_load_relaxed(&epoch->held_bytes);
  if (!is_child && held_bytes >= TSL_PURGE_NEAR_BYTES) tsl_purge_call_helper(held_bytes);
  return (struct ending){
      .slot = slot,
      .place = tsl_epoch_place(slot),
      .purge = epoch->purge,
      .calls_helper = !is_child && held_bytes != 0,
      .held_bytes = held_bytes,
      .warm_before = tsl_load_relaxed(&tsl_heap_current->home->own->warm_count),
  };
}

static uint64_t lived_ms(const struct tsl_epoch *epoch) {
  return tsl_load_relaxed(&epoch->closed_ms) - epoch->opened_ms;
}

// Or is a guest.
static bool slot_shares(uint32_t slot) { return tsl_epoch_place(slot) != slot; }

static void rest_slabs(struct tsl_heap *heap) {
  if (heap->slab_count < REST_SLABS) return;
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_heap_look_at_ready(heap, REST_SLABS);
  tsl_change_end(change);
  tsl_heap_rest_unused(heap);
}

// Where nothing goes back, because objects live everywhere, the next close that looks is twice as
// far away.
static void rest(struct tsl_heap *heap) {
  struct tsl_part *part = tsl_part_of(heap);
  uint32_t before = heap->slab_count + heap->cell_pages;
  tsl_mixed_look(heap);
  rest_slabs(heap);
  bool is_less = heap->slab_count + heap->cell_pages < before;
  uint32_t pace = part->rest_pace;
  part->rest_pace = is_less ? 1 : pace < REST_CLOSES ? 2 * pace : pace;
  part->rest_in = part->rest_pace;
}

// A thread that ends many at once enters none meanwhile: what it keeps at hand in the place that
// they shared goes back, so that slabs can empty. That of guests may be ending.
static void shared_rest(uint32_t place) {
  if (!tsl_epoch_is_shared(tsl_epoch_at(place))) return;
  struct tsl_heap *heap = tsl_scope_heap(place);
  if (heap == NULL || (heap->slab_count < REST_SLABS && heap->cell_pages < REST_PAGES)) return;
  struct tsl_part *part = tsl_part_of(heap);
  bool is_burst = part->rest_leaves == heap->leaves;
  part->rest_leaves = heap->leaves;
  if (is_burst || --part->rest_in == 0) tsl_part_visit_inside(heap, rest);
}

static void collect_free(struct tsl_heap *heap) {
  tsl_mixed_look(heap);
  tsl_heap_collect(heap);
}

// What others freed in the thread's part of the place is free as well, where epochs share that.
static void purge_what_is_free(uint32_t place) {
  bool is_shared = tsl_epoch_is_shared(tsl_epoch_at(place));
  struct tsl_heap *heap = is_shared ? tsl_scope_heap(place) : NULL;
  if (heap != NULL) tsl_part_visit_inside(heap, collect_free);
  tsl_home_units_trim(tsl_heap_current->home, 0);
  tsl_purge_now();
}

static void purge_as_wanted(const struct ending *ending) {
  if (ending->purge == TSLAB_PURGE_DECAY) return;
  if (ending->purge == TSLAB_PURGE_KEEP) return tsl_purge_keep(ending->held_bytes);
  purge_what_is_free(ending->place);
}

// A row is written where something stays (open.c).
static void tell_if_it_stays(uint32_t slot) {
  bool stays = tsl_load_relaxed(&tsl_epoch_at(slot)->undrained) != 1;
  if (stays && tsl_report_has(slot)) tsl_report_ended(slot);
}

// What the epoch had is little, and a cell of it, or of a child that ended with it, waits for the
// next one of the label (warm.h).
static bool is_warm(const struct ending *ending) {
  uint32_t warm = tsl_load_relaxed(&tsl_heap_current->home->own->warm_count);
  return ending->held_bytes <= MOST_CELL_BYTES && warm > ending->warm_before;
}

// Nobody else calls the helper for what became idle, and one that was ending may not have seen it.
static void end_finish(struct ending ending) {
  tell_if_it_stays(ending.slot);
  tsl_epoch_drain(ending.slot, 1);
  purge_as_wanted(&ending);
  if (ending.calls_helper && !is_warm(&ending)) tsl_purge_call_helper(0);
}

TSL_NOINLINE static void count_large_list(uint32_t slot, struct tsl_survivors *survivors) {
  tsl_large_list_count(slot, survivors);
  tsl_watch_add(tsl_epoch_at(slot)->label, TSL_CLASSES);
}

// It has no memory of its own; while children hold some it was told as ended.
TSL_ALWAYS_INLINE void close_sharing(uint32_t slot, uint32_t place) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_assert(tsl_load_relaxed(&epoch->large_blocks) == 0);
  shared_rest(place);
  tsl_history_shared(epoch->label, lived_ms(epoch));
  tsl_store_release(&epoch->settled, 1);          // pairs: settled
  bool purges = epoch->purge == TSLAB_PURGE_NOW;  // the record may be another epoch's below
  tsl_epoch_drain(slot, 1);
  if (tsl_unlikely(purges)) purge_what_is_free(place);
}

// Counts the survivors outside of its heaps, and tells the label how the epoch ended.
static void close_contents(const struct ending *ending, struct tsl_survivors *survivors) {
  struct tsl_epoch *epoch = tsl_epoch_at(ending->slot);
  struct tsl_closed closed = {
      .held_bytes = ending->held_bytes,
      .pinned_bytes = survivors->pages << TSL_CELL_PAGE_LOG2,
      .survivors = survivors->objects,
      .lived_ms = lived_ms(epoch),
  };
  if (tsl_load_relaxed(&epoch->large_blocks) != 0) count_large_list(ending->slot, survivors);
  if (tsl_epoch_keeps(ending->slot)) tsl_sweep_count_spared(ending->slot, survivors);
  closed.survivor_bytes = survivors->bytes;
  // What guests left says nothing of the label of their host.
  if (tsl_load_relaxed(&epoch->has_guests) == 0) tsl_history_closed(epoch->label, &closed);
  tsl_report_history(epoch->label);
}

// Most that hold nothing, not by their children either, were never entered: there is nothing to
// count, and nothing to give back.
static bool close_unused(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint32_t first = 0;
  if (tsl_load_relaxed(&epoch->held_bytes) != 0 || epoch->purge != TSLAB_PURGE_DECAY) return false;
  if (!tsl_cas_acq_rel(&epoch->heaps, &first, TSL_EPOCH_ENDED)) return false;  // pairs: epoch-heaps
  tsl_store_release(&epoch->settled, 1);                                       // pairs: settled
  tell_if_it_stays(slot);
  tsl_epoch_drain(slot, 1);
  return true;
}

TSL_NOINLINE static void close_own(uint32_t slot, struct tsl_survivors *survivors) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (close_unused(slot)) return;
  struct ending ending = end_begin(slot, false);
  end_heaps(epoch, survivors);
  if (ending.held_bytes != 0) close_contents(&ending, survivors);
  tsl_store_release(&epoch->settled, 1);  // pairs: settled
  end_finish(ending);
}

// Who moves the epoch away from open ends it, alone. Cleanups come first: they may use what lives
// in it.
int tsl_close_epoch(tslab_epoch id, struct tsl_survivors *survivors) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = tsl_epoch_end(id, TSL_EPOCH_CLOSED);
  if (error != 0) return error;
  tsl_heap_current->home->own->ends.closes++;
  tsl_deferred_run(slot);
  uint32_t place = tsl_epoch_place(slot);
  if (place == slot)
    close_own(slot, survivors);
  else
    close_sharing(slot, place);
  return 0;
}

typedef void child_visit(tslab_epoch child, uint32_t rank);

// One that is being opened sees that its parent is not open (open.c, parent_ended).
static void visit_children(uint32_t slot, child_visit *visit, uint32_t rank) {
  tsl_fence_seq_cst();                                               // pairs: epoch-children
  if (tsl_load_acquire(&tsl_epoch_at(slot)->children) == 0) return;  // pairs: epoch-children
  uint32_t last = tsl_load_relaxed(&tsl_region.last_epoch);
  for (uint32_t child = 1; child <= last; child++) {
    uint64_t word = tsl_load_acquire(&tsl_epoch_at(child)->word);  // pairs: epoch-word
    if (tsl_load_relaxed(&tsl_epoch_at(child)->parent) != slot ||
        tsl_epoch_state(word) == TSL_EPOCH_FREE)
      continue;
    visit(tsl_epoch_id(child, word), rank);
  }
}

// Whether all parts of an ended epoch are sealed: no thread is inside, or about to leave.
static bool all_sealed(uint32_t slot) {
  return tsl_load_acquire(&tsl_epoch_at(slot)->unsealed) == 0;  // pairs: unsealed
}

static bool is_released(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  uint64_t word = tsl_load_acquire(&tsl_epoch_at(slot)->word);  // pairs: epoch-word
  return word == (tsl_epoch_open_word(id) | TSL_EPOCH_RELEASED) &&
         tsl_load_acquire(&tsl_epoch_at(slot)->settled) != 0 && all_sealed(slot);  // pairs: settled
}

// What the end of an epoch spared belongs to an ancestor of it, which ends now with this rank.
static void end_spared(tslab_epoch id, uint32_t rank) {
  uint32_t slot = tsl_epoch_slot(id);
  if (!tsl_epoch_hold(slot)) return;
  if (is_released(id)) {
    visit_children(slot, end_spared, rank);
    if (tsl_epoch_keeps(slot)) tsl_sweep_spare_again(slot, rank);
    if (tsl_epoch_keeps(slot)) tsl_large_list_release_again(slot, rank);
  }
  tsl_epoch_drain(slot, 1);
}

static int release(tslab_epoch id, bool is_child);

static void release_child(tslab_epoch id, uint32_t rank) {
  release(id, true);
  end_spared(id, rank);
}

void tsl_close_release_children(uint32_t slot) {
  visit_children(slot, release_child, tsl_spare_rank(slot));
}

static void give_contents(struct ending ending) {
  tsl_large_list_release(ending.slot);
  tsl_sweep_give(ending.slot);
  end_finish(ending);
}

static void release_contents(uint32_t slot) {
  struct tsl_survivors none = {0};
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_deferred_run(slot);
  tsl_close_release_children(slot);
  if (!slot_shares(slot)) end_heaps(epoch, &none);
  if (tsl_load_relaxed(&epoch->large_blocks) != 0 && !tsl_epochs_wait) tsl_large_list_release(slot);
  tsl_store_release(&epoch->settled, 1);  // pairs: settled
}

// Waits for a moment: a thread may just be leaving, or just have been refused.
static bool comes_to_rest(uint32_t slot) {
  for (unsigned attempt = 0; attempt < REST_ATTEMPTS; attempt++) {
    uint32_t settled = tsl_load_acquire(&tsl_epoch_at(slot)->settled);  // pairs: settled
    if (settled != 0 && all_sealed(slot)) return true;
    tsl_os_yield();
  }
  return false;
}

static bool poison_end(uint32_t slot) {
  bool is_ended = all_sealed(slot) && tsl_poison_end(slot);
  if (is_ended) give_contents(end_begin(slot, false));
  return is_ended;
}

// PO2. One that cannot be taken out yet takes the place of the next.
static void poison(uint32_t slot) {
  if (tsl_epoch_keeps(slot)) tsl_large_list_spare(slot);
  tsl_poison_begin(slot);
  for (unsigned attempt = 0; attempt < TSL_POISON_EPOCHS; attempt++) {
    slot = tsl_poison_swap(slot);
    if (slot == 0 || poison_end(slot)) return;
  }
}

void tsl_close_wait(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_store_release(&epoch->settled, 1);  // pairs: settled
  if (tsl_load_relaxed(&epoch->held_bytes) == 0) return tsl_epoch_drain(slot, 1);
  poison(slot);
}

// Of a child that ends with its parent the program may expect nothing but that.
static void note_release(uint32_t label) {
  if (tsl_history_released(label)) tsl_report_history(label);
}

// The claim comes after the last reason to refuse: nobody gives it back.
static int release_closed(tslab_epoch id, bool is_child) {
  uint32_t slot = tsl_epoch_slot(id);
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t closed = tsl_epoch_open_word(id) | TSL_EPOCH_CLOSED;
  if (tsl_load_relaxed(&epoch->word) != closed) return ESTALE;
  if (!comes_to_rest(slot)) return EBUSY;
  if (!tsl_epoch_claim_release(id)) return ESTALE;
  tsl_heap_current->home->own->ends.releases++;
  struct ending ending = end_begin(slot, is_child);
  bool keeps_blocks = slot_shares(slot);
  if (!is_child) note_release(epoch->label);
  tsl_close_release_children(slot);
  bool spares = tsl_epoch_keeps(slot);
  if (spares) tsl_sweep_spare(slot);
  if (tsl_epochs_wait && !keeps_blocks) return poison(slot), 0;
  tsl_large_list_release(slot);
  if (!keeps_blocks && !spares) tsl_sweep_give(slot);
  end_finish(ending);
  return keeps_blocks ? ENOTSUP : 0;
}

static int release(tslab_epoch id, bool is_child) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = tsl_epoch_end(id, TSL_EPOCH_RELEASED);
  if (error == ECANCELED) return release_closed(id, is_child);
  if (error != 0) return error;
  tsl_heap_current->home->own->ends.releases++;
  struct ending ending = end_begin(slot, is_child);
  bool keeps_blocks = slot_shares(slot);
  if (!is_child) note_release(tsl_epoch_at(slot)->label);
  release_contents(slot);
  if (tsl_epochs_wait && !keeps_blocks) return poison(slot), 0;
  end_finish(ending);
  return keeps_blocks ? ENOTSUP : 0;
}

int tsl_close_release(tslab_epoch id) { return release(id, false); }
