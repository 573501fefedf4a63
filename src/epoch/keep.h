// keep: marks live blocks, so that the end of their epoch spares them (spare.h).
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// 0; EFAULT (no live block begins there), ECANCELED (its epoch was released, and has not spared
// it), ENOMEM. A block of the default epoch, or of a shared one, stays as it is: no release ends
// it. Any thread.
TSL_HIDDEN int tsl_keep_block(const void *block);

// An object moves from one live block to another one: keeps that as long as the first would have
// been. It lies in the epoch of the first, or in an ancestor of that, or in the default epoch. Any
// thread.
TSL_HIDDEN void tsl_keep_instead(const void *block, const void *moved);
