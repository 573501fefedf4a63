#include "epoch/close.h"

#include <errno.h>

#include "base/check.h"
#include "epoch/home_units.h"
#include "epoch/large_list.h"
#include "epoch/mixed.h"
#include "epoch/pool.h"
#include "epoch/remains.h"
#include "epoch/scope.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "os/os.h"

enum { REST_ATTEMPTS = 16 };

struct tsl_deferred {
  struct tsl_deferred *next;
  void (*run)(void *);
  void *argument;
};

// The list of an epoch that has ended.
static struct tsl_deferred deferred_ended;

// The epoch is held, so that its slot is not another one's meanwhile.
static int defer_held(struct tsl_epoch *epoch, void (*run)(void *), void *argument) {
  unsigned class = tsl_sizeclass_of(sizeof(struct tsl_deferred));
  struct tsl_deferred *deferred = tsl_heap_pop(tsl_heap_current->home, class);
  if (deferred == NULL) return ENOMEM;
  deferred->run = run;
  deferred->argument = argument;
  struct tsl_deferred *first = tsl_load_relaxed(&epoch->deferred);
  do {
    if (first == &deferred_ended) {
      tsl_heap_put_any(tsl_map_lookup(deferred), deferred);
      return ECANCELED;
    }
    deferred->next = first;
  } while (!tsl_cas_release(&epoch->deferred, &first, deferred));  // pairs: deferred
  return 0;
}

int tsl_close_defer(tslab_epoch id, void (*run)(void *), void *argument) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = id == TSLAB_DEFAULT ? EPERM : tsl_epoch_check(id);
  if (error != 0) return error;
  if (!tsl_epoch_hold(slot)) return ESTALE;
  error = tsl_epoch_check(id);
  if (error == 0) error = defer_held(tsl_epoch_at(slot), run, argument);
  tsl_epoch_drain(slot, 1);
  return error;
}

// What runs may allocate, free, and enter other epochs.
static void run_deferred(struct tsl_epoch *epoch) {
  struct tsl_deferred *first =
      tsl_exchange_acquire(&epoch->deferred, &deferred_ended);  // pairs: deferred
  for (struct tsl_deferred *deferred = first, *next; deferred != NULL; deferred = next) {
    next = deferred->next;
    deferred->run(deferred->argument);
    tsl_heap_put_any(tsl_map_lookup(deferred), deferred);
  }
}

static bool others_are_in(const struct tsl_heap *mine, uint32_t number) {
  for (; number != 0; number = tsl_load_relaxed(&tsl_heap_at(number)->epoch_next)) {
    if (tsl_heap_at(number)->home != mine) return true;
  }
  return false;
}

// No thread gets a heap there any more; those that have one are sealed here, or when their thread
// leaves.
static void end_heaps(struct tsl_epoch *epoch, struct tsl_survivors *survivors) {
  uint32_t first = tsl_exchange_acq_rel(&epoch->heaps, TSL_EPOCH_ENDED);  // pairs: epoch-heaps
  if (others_are_in(tsl_heap_current->home, first)) tsl_scope_barrier();
  for (uint32_t number = first, next; number != 0; number = next) {
    struct tsl_heap *heap = tsl_heap_at(number);
    next = tsl_load_relaxed(&heap->epoch_next);
    bool is_mine = heap->home == tsl_heap_current->home;
    if (is_mine) tsl_store_relaxed(&heap->holds, 1);
    tsl_report_scopes(heap);
    tsl_scope_end_heap(heap, survivors);
    if (!is_mine) tsl_heap_let_go(heap);
  }
}

// What the last step of an end needs, when the record may be another epoch's already.
struct ending {
  uint32_t slot;
  uint8_t purge;
  size_t held_bytes;
};

static struct ending end_begin(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  return (struct ending){slot, epoch->purge, tsl_load_relaxed(&epoch->held_bytes)};
}

static void end_finish(struct ending ending) {
  tsl_epoch_drain(ending.slot, 1);
  if (ending.purge == TSLAB_PURGE_DECAY) return;
  if (ending.purge == TSLAB_PURGE_KEEP) return tsl_purge_keep(ending.held_bytes);
  tsl_home_units_trim(tsl_heap_current->home, 0);
  tsl_purge_now();
}

int tsl_close_epoch(tslab_epoch id, struct tsl_survivors *survivors) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = tsl_epoch_end(id, TSL_EPOCH_CLOSED);
  if (error != 0) return error;
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct ending ending = end_begin(slot);
  run_deferred(epoch);
  end_heaps(epoch, survivors);
  if (tsl_load_relaxed(&epoch->large_blocks) != 0) tsl_large_list_count(slot, survivors);
  tsl_store_release(&epoch->settled, 1);  // pairs: settled
  end_finish(ending);
  return 0;
}

// The children open now; one that is being opened sees that its parent has ended (parent_ended).
static void release_children(uint32_t slot) {
  tsl_fence_seq_cst();                                               // pairs: epoch-children
  if (tsl_load_acquire(&tsl_epoch_at(slot)->children) == 0) return;  // pairs: epoch-children
  uint32_t last = tsl_load_relaxed(&tsl_region.last_epoch);
  for (uint32_t child = 1; child <= last; child++) {
    uint64_t word = tsl_load_acquire(&tsl_epoch_at(child)->word);  // pairs: epoch-word
    if (tsl_load_relaxed(&tsl_epoch_at(child)->parent) != slot ||
        tsl_epoch_state(word) == TSL_EPOCH_FREE)
      continue;
    tsl_close_release(tsl_epoch_id(child, word));
  }
}

// Ends what lives on in the sealed cells of a unit; returns how many there were.
static uint32_t sweep_cells(tsl_unit unit, uint32_t slot) {
  uint32_t ended = 0;
  for (uint32_t page = 0; page < TSL_UNIT_PAGES; page++) {
    const struct tsl_cell *cell = &tsl_cells_at(unit)->cells[page];
    if (tsl_load_relaxed(&cell->epoch) != slot || tsl_load_relaxed(&cell->heap) != 0) continue;
    tsl_mixed_give(unit * TSL_UNIT_PAGES + page);
    ended++;
  }
  return ended;
}

// One that is empty waits for its guard (seal.c), and goes back from there.
static void sweep_slab(size_t unit, uint32_t slot) {
  struct tsl_slab *slab = tsl_slab_at(unit);
  if (tsl_load_relaxed(&tsl_span_at(unit)->epoch) != slot) return;
  if (tsl_load_relaxed(&slab->left) == 0) return;
  tsl_slab_wipe(slab);
  tsl_heap_drained(slab);
}

// Ends what outlived the heaps of a closed epoch. Takes time in proportion to the region.
static void sweep(uint32_t slot) {
  uint32_t ended = 0;
  size_t end = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  for (size_t unit = tsl_region.first_unit; unit < end;) {
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit));
    unsigned code = tsl_entry_code(entry);
    bool is_slab = entry >> TSL_CODE_BITS == TSL_HEAP_SEALED;
    bool is_cells = entry != 0 && tsl_code_is_cell(code);
    size_t units = is_slab ? tsl_sizeclasses[code / 2].units : 1;
    if (is_slab || is_cells) tsl_remains_lock();
    if (is_slab) sweep_slab(unit, slot);
    if (is_cells) ended += sweep_cells((tsl_unit)unit, slot);
    if (is_slab || is_cells) tsl_remains_unlock();
    unit += units;
  }
  if (ended != 0) tsl_epoch_drain(slot, ended);
}

static void release_contents(uint32_t slot) {
  struct tsl_survivors none = {0};
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  run_deferred(epoch);
  release_children(slot);
  end_heaps(epoch, &none);
  if (tsl_load_relaxed(&epoch->large_blocks) != 0) tsl_large_list_release(slot);
}

// Whether nobody is inside the epoch any more, nor just leaving it.
static bool all_sealed(uint32_t slot) {
  for (uint32_t number = tsl_load_relaxed(&tsl_region.last_heap); number != 0; number--) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    uint32_t initialised = tsl_load_acquire(&heap->number);  // pairs: heap-init
    if (initialised == 0 || tsl_load_relaxed(&heap->epoch) != slot) continue;
    uint32_t sealing = tsl_load_acquire(&heap->sealing);  // pairs: heap-sealing
    if (sealing != TSL_HEAP_IS_SEALED) return false;
  }
  return true;
}

// Who is just leaving, or was just refused, gets a moment.
static bool comes_to_rest(uint32_t slot) {
  for (unsigned attempt = 0; attempt < REST_ATTEMPTS; attempt++) {
    uint32_t settled = tsl_load_acquire(&tsl_epoch_at(slot)->settled);  // pairs: settled
    if (settled != 0 && all_sealed(slot)) return true;
    tsl_os_yield();
  }
  return false;
}

static int release_closed(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t closed = tsl_epoch_open_word(id) | TSL_EPOCH_CLOSED;
  if (tsl_load_relaxed(&epoch->word) != closed) return ESTALE;
  if (!comes_to_rest(slot)) return EBUSY;
  if (!tsl_epoch_claim_release(id)) return ESTALE;
  struct ending ending = end_begin(slot);
  release_children(slot);
  tsl_large_list_release(slot);
  sweep(slot);
  end_finish(ending);
  return 0;
}

int tsl_close_release(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = tsl_epoch_end(id, TSL_EPOCH_RELEASED);
  if (error == ECANCELED) return release_closed(id);
  if (error != 0) return error;
  struct ending ending = end_begin(slot);
  release_contents(slot);
  end_finish(ending);
  return 0;
}
