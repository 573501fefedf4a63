// charge: the memory that epochs hold, and their limits (E3). Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct tsl_epoch;

TSL_HIDDEN bool tsl_epoch_charge_chain(uint32_t slot, size_t bytes);
TSL_HIDDEN void tsl_epoch_discharge_chain(uint32_t slot, size_t bytes);

// Bytes that the epoch may still hold before a hard limit refuses; a moment's value.
TSL_HIDDEN size_t tsl_epoch_room(uint32_t slot);

// Whether a hard limit of the epoch's own or of an ancestor's may refuse memory. Any thread.
TSL_HIDDEN bool tsl_epoch_is_limited(uint32_t slot);

// Set the limits of an epoch that begins, and of an open one that the caller holds: what it holds
// already stays. 0: no limit.
TSL_HIDDEN void tsl_epoch_begin_limits(struct tsl_epoch *epoch, size_t soft_bytes,
                                       size_t hard_bytes);
TSL_HIDDEN void tsl_epoch_set_limits(uint32_t slot, size_t soft_bytes, size_t hard_bytes);

// Charges the epoch and its ancestors for memory. False, after the callback has run, when a hard
// limit refuses it. The calling thread has a home: the callback may allocate.
TSL_ALWAYS_INLINE bool tsl_epoch_charge(uint32_t slot, size_t bytes) {
  return slot == 0 || tsl_epoch_charge_chain(slot, bytes);
}

// The same where neither the epoch nor an ancestor has a limit: nothing refuses, and nobody is
// called. A limit that another thread sets meanwhile finds it held already.
TSL_HIDDEN bool tsl_epoch_is_charged_freely(uint32_t slot);
TSL_HIDDEN void tsl_epoch_charge_freely(uint32_t slot, size_t bytes);

// Takes them off again as the part that holds them ends. Who ends it tells the statistics of the
// epoch; of its ancestors they are told here.
TSL_HIDDEN void tsl_epoch_discharge_freely(uint32_t slot, size_t bytes);

// Moves a charge between two epochs with the same parent: what their ancestors hold stays as it is.
TSL_HIDDEN void tsl_epoch_move_charge(uint32_t from, uint32_t to, size_t bytes);

TSL_ALWAYS_INLINE void tsl_epoch_discharge(uint32_t slot, size_t bytes) {
  if (slot != 0) tsl_epoch_discharge_chain(slot, bytes);
}
