// large_list: the large blocks of declared epochs. Those of the default epoch are on no list.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "epoch/seal.h"

// Lists a block that was just allocated; its epoch is held (tsl_epoch_hold) and charged. Any
// thread.
TSL_HIDDEN void tsl_large_list_add(uint32_t slot, void *block);

// Frees a large block of any epoch. Any thread.
TSL_HIDDEN void tsl_large_list_free(void *block);

// Resizes a block of any epoch in place, or moves it where it may; NULL, and nothing changed, when
// neither can be done. Any thread; one that lets the block grow has a home.
TSL_HIDDEN void *tsl_large_list_resize(void *block, size_t bytes, bool may_move);

// Adds the large blocks of an epoch to its survivors.
TSL_HIDDEN void tsl_large_list_count(uint32_t slot, struct tsl_survivors *survivors);

// Frees all large blocks of an epoch. The thread that releases it.
TSL_HIDDEN void tsl_large_list_release(uint32_t slot);

// Makes all large blocks of an epoch that has ended inaccessible, or accessible and zero again.
// False when the system refused any.
TSL_HIDDEN bool tsl_large_list_protect(uint32_t slot, bool is_protected);

// In the child of a fork: takes over the lock if a lost thread held it, and mends the list.
TSL_HIDDEN void tsl_large_list_after_fork(void);
