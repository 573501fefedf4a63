// deferred: calls that run at the end of an epoch, the last one registered first, unless they are
// cancelled before. Each is a record on the epoch's list; the record is a block of the home of the
// thread that registered the call.
//
//  D1  any thread pushes a record, without the lock. The thread that ends the epoch takes all
//      records at once and leaves a mark in their place. A thread that cancels takes one record
//      off, under the lock
//  D2  the thread that ends the epoch passes the lock before it frees a record: no thread walks the
//      list then
//  D3  that thread takes no records and leaves no mark where nobody else holds the epoch and the
//      list is empty: who registers a call holds the epoch first, and sees then that it has ended
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "state/epoch.h"

// Registers `run(argument)`, on the thread that ends the epoch. 0, ENOMEM, ESTALE or ECANCELED.
// `number` names the call from then on; NULL: nobody will cancel it.
TSL_HIDDEN int tsl_deferred_add(tslab_epoch id, void (*run)(void *), void *argument,
                                uint64_t *number);

// True when the call was registered, and will not run. Takes time in proportion to what was
// registered after it.
TSL_HIDDEN bool tsl_deferred_cancel(tslab_epoch id, uint64_t number);

// The rest of running the calls where there may be some.
TSL_HIDDEN void tsl_deferred_run_all(struct tsl_epoch *epoch);

// D3. Who registers a call holds the epoch before it looks whether that is open; the caller has
// changed the word from open.
TSL_ALWAYS_INLINE bool tsl_deferred_has_none(const struct tsl_epoch *epoch) {
  tsl_fence_after_exchange();                                     // pairs: deferred
  bool is_mine_alone = tsl_load_acquire(&epoch->undrained) == 1;  // pairs: undrained
  return is_mine_alone && tsl_load_relaxed(&epoch->deferred) == NULL;
}

// Runs all registered calls; none can be registered after that. The thread that ends the epoch.
// What runs may allocate, free, and enter other epochs.
TSL_ALWAYS_INLINE void tsl_deferred_run(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (tsl_unlikely(!tsl_deferred_has_none(epoch))) tsl_deferred_run_all(epoch);
}

// Calls can be registered again. The thread that resets the epoch, after it ran them.
TSL_HIDDEN void tsl_deferred_renew(uint32_t slot);

// In the child of a fork: takes over the lock of a lost thread that was cancelling.
TSL_HIDDEN void tsl_deferred_after_fork(void);
