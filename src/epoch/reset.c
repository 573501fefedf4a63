#include "epoch/reset.h"

#include <errno.h>

#include "epoch/close.h"
#include "epoch/deferred.h"
#include "epoch/large_list.h"
#include "epoch/open.h"
#include "epoch/scope.h"
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

static void end_objects(struct tsl_epoch *epoch, uint32_t slot) {
  uint32_t number = tsl_load_acquire(&epoch->heaps);  // pairs: epoch-heaps
  for (; number != 0; number = tsl_load_relaxed(&tsl_part_at(number)->epoch_next))
    tsl_part_reset(tsl_part_at(number));
  if (tsl_load_relaxed(&epoch->large_blocks) != 0) tsl_large_list_release(slot);
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
