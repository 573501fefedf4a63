// epochs: the rows of epochs and labels in the statistics file. The thread that changes an epoch
// writes its row. No call waits; without a file none has an effect.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "state/epoch.h"
#include "tell/rows.h"

// Writes a label's row, once. Any thread.
TSL_HIDDEN void tsl_report_label(uint32_t label);

// Writes what is known of a label's epochs. Any thread; of two at once either may stay.
TSL_HIDDEN void tsl_report_history(uint32_t label);

// Counts, for the label of an epoch, that its limit, or the system, refused memory. Any thread.
TSL_HIDDEN void tsl_report_limit_refused(uint32_t slot);
TSL_HIDDEN void tsl_report_memory_refused(uint32_t slot);

// Writes how many bytes an epoch holds. Any thread. Of two calls at the same time either value may
// stay in the row; the end of the epoch writes it again.
TSL_HIDDEN void tsl_report_held(uint32_t slot, size_t bytes);

// Writes an epoch's limits, after they were changed. Any thread.
TSL_HIDDEN void tsl_report_limits(uint32_t slot);

// Writes what an epoch holds already, when the file is made. A thread that holds the epoch.
TSL_HIDDEN void tsl_report_held_epoch(uint32_t slot);

// Writes the counts of an epoch's large blocks. Under their lock.
TSL_HIDDEN void tsl_report_large(uint32_t slot) TSL_REQUIRES(tsl_large_list_lock);

// What the row of an epoch has (`told`): most short ones never get any.
enum { TSL_NOT_TOLD, TSL_TOLD, TSL_HAS_SURVIVORS };
TSL_ALWAYS_INLINE bool tsl_report_has(uint32_t slot) {
  return tsl_load_relaxed(&tsl_epoch_at(slot)->told) != TSL_NOT_TOLD;
}
TSL_ALWAYS_INLINE struct tsl_epochs_row *tsl_report_row(uint32_t slot) {
  return tsl_report_has(slot) ? TSL_ROW_MADE(epochs, slot) : NULL;
}

// Write that an epoch which has a row was closed or released; that it is over.
TSL_HIDDEN void tsl_report_ended(uint32_t slot);
TSL_HIDDEN void tsl_report_over(uint32_t slot);

// Adds the blocks that survive in a part which is being sealed, by class. Any thread.
TSL_HIDDEN void tsl_report_survivors(uint32_t slot, const uint32_t *counts);

// Subtracts those of them that ended with their epoch, by class. Any thread.
TSL_HIDDEN void tsl_report_survivors_ended(uint32_t slot, const uint32_t *counts);

// Subtracts one of them, which was freed. It may come before the seal has added the block: the sum
// is right afterwards. Any thread.
TSL_ALWAYS_INLINE void tsl_report_survivor_freed(uint32_t slot, unsigned class) {
  struct tsl_epochs_row *row = tsl_report_row(slot);
  if (tsl_unlikely(row == NULL)) return;
  tsl_sub_relaxed(&row->survivors[class], 1);
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (tsl_unlikely(tsl_load_relaxed(&epoch->told) != TSL_HAS_SURVIVORS))
    tsl_store_relaxed(&epoch->told, TSL_HAS_SURVIVORS);
}

// In the child of a fork, whose file has no rows of epochs yet.
TSL_HIDDEN void tsl_report_forget_epochs(void);
