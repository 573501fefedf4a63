// open: opens epochs, finds them by their ids, and moves their state away from open.
#pragma once

#include "state/epoch.h"

// Makes slot 0 the default epoch. Called once, after the region was reserved.
TSL_HIDDEN void tsl_epoch_init(void);

// Opens an epoch; the options' `parent` is the id of an epoch or 0; NULL: no options. Returns 0 and
// the id, or ENOMEM, ELOOP (the parent has too many ancestors), or what tsl_epoch_check says of the
// parent.
TSL_HIDDEN int tsl_epoch_open(uint32_t label, const tslab_epoch_options *options, tslab_epoch *id);

// The same for a guest of its parent (place.h), where that can be a host.
TSL_HIDDEN int tsl_epoch_open_guest(uint32_t label, const tslab_epoch_options *options,
                                    tslab_epoch *id);

// The same for the shared one of a label, and for one that shares: `place` is the slot of that.
// `purge` is TSLAB_PURGE_DECAY or _NOW; neither has another option.
TSL_HIDDEN int tsl_epoch_open_shared(uint32_t label, tslab_epoch *id);
TSL_HIDDEN int tsl_epoch_open_sharing(uint32_t label, uint32_t place, enum tslab_purge purge,
                                      tslab_epoch *id);

// 0, ESTALE for an id that never was or whose epoch has retired, ECANCELED for one that has ended,
// EBUSY for one that is being reset.
TSL_HIDDEN int tsl_epoch_check(tslab_epoch id);

// Whether it would return 0: without a call, for paths where that is so.
TSL_ALWAYS_INLINE bool tsl_epoch_is_open(tslab_epoch id) {
  uint32_t slot = tsl_epoch_slot(id);
  if (slot - 1 >= tsl_load_relaxed(&tsl_region.last_epoch) || id == slot) return false;
  uint64_t word = tsl_load_acquire(&tsl_epoch_at(slot)->word);  // pairs: epoch-word
  return word == tsl_epoch_open_word(id);
}

// Why an epoch that nobody may end cannot be ended: EPERM, or what tsl_epoch_check says when the id
// is that of one that was in its slot before.
TSL_HIDDEN int tsl_epoch_refuse(tslab_epoch id);

// The record of an epoch that is not retired; NULL when there is none.
TSL_HIDDEN struct tsl_epoch *tsl_epoch_find(tslab_epoch id);

// Moves the epoch from open to `state`. 0 for the one caller that does; ESTALE, or ECANCELED when
// another call has ended it, or EBUSY (it is being reset), or EPERM (the default epoch,
// or a shared one).
TSL_HIDDEN int tsl_epoch_end(tslab_epoch id, enum tsl_epoch_state state);

// Moves an epoch from closed to released, and keeps it from retiring: the caller drains it by one.
// False when it has retired or was released already.
TSL_HIDDEN bool tsl_epoch_claim_release(tslab_epoch id);
