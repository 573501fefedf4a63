// keep: marks live blocks, so that the end of their epoch spares them (spare.h).
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// 0; EFAULT (no live block begins there), ECANCELED (its epoch was released, and has not spared
// it), ENOMEM. A block of the default epoch, or of a shared one, stays as it is: no release ends
// it. Any thread.
TSL_HIDDEN int tsl_keep_block(const void *block);

// The slot of the epoch whose end ends a live block: its own, or an ancestor of that where an end
// has spared it; 0: only a free does. Any thread.
TSL_HIDDEN uint32_t tsl_keep_account(const void *block);

// An object moves from one live block to another one, which lies in the epoch that tsl_keep_account
// names, or in the default epoch: keeps that if the first is kept. Any thread.
TSL_HIDDEN void tsl_keep_instead(const void *block, const void *moved);
