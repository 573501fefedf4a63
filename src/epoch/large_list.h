// large_list: the large blocks of declared epochs. Those of the default epoch are on no list.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "epoch/seal.h"
#include "memory/record.h"

// Lists a block that was just allocated; its epoch is held (tsl_epoch_hold) and charged. Any
// thread.
TSL_HIDDEN void tsl_large_list_add(uint32_t slot, void *block);

// Whether the end of its epoch spares a block, or did: it gets its rank before `kept` is taken off.
TSL_ALWAYS_INLINE bool tsl_large_is_spared(const struct tsl_span *span) {
  uint32_t kept = tsl_load_acquire(&span->kept);  // pairs: kept
  return kept != 0 || tsl_load_relaxed(&span->rank) != 0;
}

// Frees a large block of any epoch. Any thread.
TSL_HIDDEN void tsl_large_list_free(void *block);

// Resizes a block of any epoch in place, or moves it where it may; NULL, and nothing changed, when
// neither can be done. Any thread; one that lets the block grow has a home.
TSL_HIDDEN void *tsl_large_list_resize(void *block, size_t bytes, bool may_move);

// Adds the large blocks of an epoch to its survivors.
TSL_HIDDEN void tsl_large_list_count(uint32_t slot, struct tsl_survivors *survivors);

// Keeps a live large block of an epoch (kept.h). Any thread.
TSL_HIDDEN void tsl_large_list_keep(uint32_t slot, const void *block);

// Frees the large blocks of an epoch that are not kept, and spares the others (spare.h); the same
// of those that ends spared whose rank is above `rank`. The thread that ends it.
TSL_HIDDEN void tsl_large_list_release(uint32_t slot);
TSL_HIDDEN void tsl_large_list_release_again(uint32_t slot, uint32_t rank);

// Moves those that are not kept to another epoch with the same parent, which has ended, and spares
// the others.
TSL_HIDDEN void tsl_large_list_move(uint32_t slot, uint32_t to);

// Spares those that are kept, and leaves the others as they are.
TSL_HIDDEN void tsl_large_list_spare(uint32_t slot);

// Makes the large blocks of an epoch that has ended inaccessible, but those that its end spared, or
// accessible and zero again. False when the system refused any.
TSL_HIDDEN bool tsl_large_list_protect(uint32_t slot, bool is_protected);

// In the child of a fork: takes over the lock if a lost thread held it, and mends the list.
TSL_HIDDEN void tsl_large_list_after_fork(void);
