#include "epoch/reset.h"

#include <errno.h>

#include "epoch/close.h"
#include "epoch/deferred.h"
#include "epoch/large_list.h"
#include "epoch/open.h"
#include "epoch/scope.h"
#include "heap/charge.h"
#include "state/history.h"
#include "tell/epochs.h"

// E1.
static int reset_begin(tslab_epoch id) {
  struct tsl_epoch *epoch = tsl_epoch_find(id);
  if (epoch == NULL) return ESTALE;
  if (id == TSLAB_DEFAULT || tsl_epoch_is_shared(epoch)) return tsl_epoch_refuse(id);
  uint64_t open = tsl_epoch_open_word(id), word = open;
  while (!tsl_cas_acq_rel(&epoch->word, &word, open | TSL_EPOCH_RESETTING)) {  // pairs: epoch-word
    if (word == open) continue;
    int error = tsl_epoch_check(id);
    return error == 0 ? EBUSY : error;
  }
  return 0;
}

static int reset_end(tslab_epoch id, int error) {
  struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  tsl_store_release(&epoch->word, tsl_epoch_open_word(id));  // pairs: epoch-word
  return error;
}

// Nobody enters any more (scope.h).
static bool others_are_inside(const struct tsl_epoch *epoch) {
  bool has_passed = false;
  uint32_t number = tsl_load_acquire(&epoch->heaps);  // pairs: epoch-heaps
  for (; number != 0; number = tsl_load_relaxed(&tsl_part_at(number)->epoch_next)) {
    const struct tsl_heap *heap = tsl_heap_at(number);
    if (heap->home == tsl_heap_current->home) continue;
    if (!has_passed) tsl_scope_barrier();
    has_passed = true;
    tsl_scope_await_frees(tsl_part_at(number));
    if (tsl_load_acquire(&heap->depth) != 0) return true;  // pairs: scope-depth
  }
  return false;
}

static tslab_epoch parent_of(const struct tsl_epoch *epoch) {
  uint64_t word = tsl_load_acquire(&tsl_epoch_at(epoch->parent)->word);  // pairs: epoch-word
  return tsl_epoch_id(epoch->parent, word);
}

// Opens, and ends, the epoch in which what a reset ends waits (poison.h). 0 when it has no memory,
// when there is no room for another epoch, when the parent has ended, and under a hard limit, which
// what waits would use up.
static uint32_t remnant_open(const struct tsl_epoch *epoch) {
  tslab_epoch id;
  const tslab_epoch_options options = {.size = sizeof options, .parent = parent_of(epoch)};
  if (!tsl_epochs_wait || tsl_load_relaxed(&epoch->held_bytes) == 0) return 0;
  if (tsl_epoch_is_limited(epoch->parent)) return 0;
  if (tsl_epoch_open(epoch->label, &options, &id) != 0) return 0;
  if (tsl_epoch_end(id, TSL_EPOCH_RELEASED) != 0) return 0;
  struct tsl_epoch *remnant = tsl_epoch_at(tsl_epoch_slot(id));
  tsl_store_relaxed(&remnant->has_guests, tsl_load_relaxed(&epoch->has_guests));
  tsl_store_release(&remnant->heaps, TSL_EPOCH_ENDED);  // pairs: epoch-heaps
  return tsl_epoch_slot(id);
}

static void end_large(const struct tsl_epoch *epoch, uint32_t slot, uint32_t remnant) {
  if (tsl_load_relaxed(&epoch->large_blocks) == 0) return;
  if (remnant != 0) return tsl_large_list_move(slot, remnant);
  tsl_large_list_release(slot);
}

static void end_objects(struct tsl_epoch *epoch, uint32_t slot) {
  uint32_t remnant = remnant_open(epoch);
  uint32_t number = tsl_load_acquire(&epoch->heaps);  // pairs: epoch-heaps
  for (; number != 0; number = tsl_load_relaxed(&tsl_part_at(number)->epoch_next))
    tsl_part_reset(tsl_part_at(number), remnant);
  end_large(epoch, slot, remnant);
  if (remnant != 0) tsl_close_wait(remnant);
  tsl_store_relaxed(&epoch->resets, epoch->resets + 1);
}

// Cleanups come before the objects end, as in a release: they may use them.
int tsl_reset_epoch(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  int error = reset_begin(id);
  if (error != 0) return error;
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  bool is_own = tsl_epoch_place(slot) == slot;
  if (is_own && others_are_inside(epoch)) return reset_end(id, EBUSY);
  if (tsl_history_released(epoch->label)) tsl_report_history(epoch->label);
  if (!is_own) return reset_end(id, ENOTSUP);
  tsl_deferred_run(slot);
  tsl_close_release_children(slot);
  end_objects(epoch, slot);
  tsl_deferred_renew(slot);
  return reset_end(id, 0);
}
