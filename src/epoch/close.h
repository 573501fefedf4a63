// close: how epochs end. After a close the live objects stay valid until they are freed one by one.
// A release ends them all, with those of the epoch's children.
#pragma once

#include "epoch/seal.h"
#include "state/epoch.h"

// 0 and what survived, or ESTALE, ECANCELED, EPERM (the default epoch). A thread that has a heap.
TSL_HIDDEN int tsl_close_epoch(tslab_epoch id, struct tsl_survivors *survivors);

// Releases an epoch, open or closed; the same errors, and EBUSY where a thread is still inside a
// closed one. A thread that has a heap.
TSL_HIDDEN int tsl_close_release(tslab_epoch id);

// Lets what is in an ended epoch wait, if anything is (poison.h). All of its cells and slabs are
// sealed.
TSL_HIDDEN void tsl_close_wait(uint32_t slot);

// Releases the children of an epoch that is not open any more, or is being reset.
TSL_HIDDEN void tsl_close_release_children(uint32_t slot);
