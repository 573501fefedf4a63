#include "heap/hold.h"

#include "base/check.h"
#include "base/probe.h"
#include "heap/charge.h"
#include "heap/over.h"
#include "heap/slots.h"
#include "state/epoch.h"
#include "tell/epochs.h"

bool tsl_epoch_hold(uint32_t slot) {
  uint32_t *undrained = &tsl_epoch_at(slot)->undrained, seen = tsl_load_relaxed(undrained);
  while (seen != 0) {
    if (tsl_cas_acquire(undrained, &seen, seen + 1)) return true;  // pairs: undrained
  }
  return false;
}

TSL_NOINLINE static void parent_release(uint32_t parent) {
  tsl_sub_relaxed(&tsl_epoch_at(parent)->children, 1);
  tsl_epoch_drain(parent, 1);
}

// Nobody else has the epoch any more. A thread that a fork took may have charged it for memory that
// it never got, and left its large blocks half counted.
static void epoch_forget_lost(uint32_t slot) TSL_NOT_ANALYSED {
  tsl_assert(tsl_epoch_at(slot)->large == 0);
  tsl_store_relaxed(&tsl_epoch_at(slot)->large_blocks, 0);
  tsl_epoch_at(slot)->large_bytes = 0;
  size_t lost = tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes);
  if (lost != 0) tsl_epoch_discharge_chain(slot, lost);
}

// E1, E2: it has ended, and has no children.
static bool is_over(const struct tsl_epoch *epoch) {
  enum tsl_epoch_state state = tsl_epoch_state(tsl_load_relaxed(&epoch->word));
  bool has_ended = state == TSL_EPOCH_CLOSED || state == TSL_EPOCH_RELEASED;
  return has_ended && tsl_load_relaxed(&epoch->children) == 0;
}

static void epoch_retire(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint32_t parent = epoch->parent;
  tsl_invariant(is_over(epoch));
  epoch_forget_lost(slot);
  if (tsl_report_has(slot)) tsl_report_over(slot);
  TSL_PROBE1(epoch_drain, tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word)));
  tsl_store_relaxed(&epoch->late, 0);
  epoch->soft_told = 0;
  uint64_t word = tsl_load_relaxed(&epoch->word) | TSL_EPOCH_FREE;
  tsl_store_release(&epoch->word, word);  // pairs: epoch-word
  bool tells = epoch->on_over != NULL;
  if (!tells) tsl_slot_give(slot);
  if (parent != 0) parent_release(parent);
  if (tsl_unlikely(tells)) tsl_over_tell(slot);
}

// E2.
void tsl_epoch_drain(uint32_t slot, uint32_t count) {
  uint32_t before = tsl_sub_acq_rel(&tsl_epoch_at(slot)->undrained, count);  // pairs: undrained
  tsl_assert(before >= count);
  if (before == count) epoch_retire(slot);
}
