// inspect: figures of an epoch and of a block, and walks over the blocks of an epoch. Such a walk
// puts hot blocks back in their slabs first.
#pragma once

#include "epoch/seal.h"
#include "state/epoch.h"
#include "tslab.h"

// Fills all but `size`. False when the epoch is over.
TSL_HIDDEN bool tsl_inspect_epoch(tslab_epoch id, tslab_epoch_stats *stats);

// The same from the epoch's record alone: what takes a walk is 0 (what lives, what was allocated so
// far, threads and scopes).
TSL_HIDDEN bool tsl_inspect_record(tslab_epoch id, tslab_epoch_stats *stats);

// The slot of the epoch of a live block of any kind. 0: the default one, or not ours.
TSL_HIDDEN uint32_t tsl_inspect_slot_of(const void *block);

// The epoch of a live block; TSLAB_NO_EPOCH when none begins there.
TSL_HIDDEN tslab_epoch tsl_inspect_epoch_of(const void *block);

// Fills all but `size`. False when no live block begins there.
TSL_HIDDEN bool tsl_inspect_block(const void *block, tslab_block_info *info);

// Walks through all memory once. Calls `add` with what lives in each cell, slab and large block of
// a declared epoch, and with each part's hot blocks as a negative number: the sums are right modulo
// 2^64.
TSL_HIDDEN void tsl_inspect_live(void (*add)(uint32_t slot, const struct tsl_survivors *live,
                                             void *context),
                                 void *context);

// What tslab_epochs_each and tslab_epoch_blocks_each do; the epoch of the latter is not over.
TSL_HIDDEN int tsl_inspect_epochs(int (*visit)(tslab_epoch, void *), void *context);
TSL_HIDDEN int tsl_inspect_blocks(uint32_t slot, int (*visit)(void *, size_t, void *),
                                  void *context);

// Advice on all memory of an epoch. False when the system refused any.
TSL_HIDDEN bool tsl_inspect_advise(uint32_t slot, int use);
