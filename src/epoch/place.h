// place: where the blocks of an epoch lie. Most epochs have memory of their own. Those of a label
// whose history says so share: their blocks lie in one long epoch of their label, the shared one,
// which never ends. An epoch that shares is a name for a stay there: it holds no memory. Below a
// parent that the thread comes to often, such epochs are guests: names for a stay in the memory of
// their host, the parent or an ancestor of it, and end with that
// (docs/decisions/030-guests-of-their-parents.md, 033-guests-of-regular-hosts.md).
//
//  PL1  the place of an epoch never changes; it is the epoch itself, the shared one of its label,
//       or its host
//  PL2  a shared epoch is open for ever, and has one label
//  PL3  the host of a guest is an ancestor with memory of its own; once it has ended, what the
//       guest allocates lies with the nearest ancestor of that kind that is open, or in the
//       default epoch
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "tslab.h"

// Opens an epoch where its options, its label's history and option `places` want it; the first has
// no options. 0, or as tsl_epoch_open. Any thread that has a heap.
TSL_HIDDEN int tsl_place_open(uint32_t label, tslab_epoch *id);
TSL_HIDDEN int tsl_place_open_with(uint32_t label, const tslab_epoch_options *options,
                                   tslab_epoch *id);

// Whether the options ask for what only memory of its own gives.
TSL_HIDDEN bool tsl_place_wants_own(const tslab_epoch_options *options);

// Whether it is the shared one of its label. Any thread.
TSL_HIDDEN bool tsl_place_is_shared(tslab_epoch id);

// In the child of a fork: shared epochs that a lost thread was opening are opened by who needs
// them.
TSL_HIDDEN void tsl_place_after_fork(void);
