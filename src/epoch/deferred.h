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

#include "base/compiler.h"
#include "tslab.h"

// Registers `run(argument)`, on the thread that ends the epoch. 0, ENOMEM, ESTALE or ECANCELED.
// `number` names the call from then on; NULL: nobody will cancel it.
TSL_HIDDEN int tsl_deferred_add(tslab_epoch id, void (*run)(void *), void *argument,
                                uint64_t *number);

// True when the call was registered, and will not run. Takes time in proportion to what was
// registered after it.
TSL_HIDDEN bool tsl_deferred_cancel(tslab_epoch id, uint64_t number);

// Runs all registered calls; none can be registered after that. The thread that ends the epoch.
TSL_HIDDEN void tsl_deferred_run(uint32_t slot);

// Calls can be registered again. The thread that resets the epoch, after it ran them.
TSL_HIDDEN void tsl_deferred_renew(uint32_t slot);

// In the child of a fork: takes over the lock of a lost thread that was cancelling.
TSL_HIDDEN void tsl_deferred_after_fork(void);
