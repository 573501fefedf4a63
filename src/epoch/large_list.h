// large_list: the large blocks of declared epochs. Those of the default epoch are on no list.
#pragma once

#include <stddef.h>

#include "base/lock.h"
#include "epoch/seal.h"

// Lists a block that was just allocated; its epoch is held (tsl_epoch_hold) and charged. Any
// thread.
TSL_HIDDEN void tsl_large_list_add(uint32_t slot, void *block);

// Frees a large block of any epoch. Any thread.
TSL_HIDDEN void tsl_large_list_free(void *block);

// Resizes a block of any epoch in place, or by moving pages; NULL, and nothing changed, when
// neither can be.
TSL_HIDDEN void *tsl_large_list_resize(void *block, size_t bytes);

// Adds the large blocks of an epoch to its survivors.
TSL_HIDDEN void tsl_large_list_count(uint32_t slot, struct tsl_survivors *survivors);

// Ends all large blocks of an epoch.
TSL_HIDDEN void tsl_large_list_release(uint32_t slot);

// Held while a list or its counts change.
TSL_HIDDEN extern struct tsl_lock tsl_large_list_lock;

// In the child of a fork: takes over what a thread held that the child does not have.
TSL_HIDDEN void tsl_large_list_after_fork(void);
