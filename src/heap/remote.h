// remote: frees by threads that the block's heap does not belong to. Each is one atomic operation
// on the slab's word; blocks that come home in a row share one.
#pragma once

#include "state/heap.h"

// Puts back a block of another thread's heap, or of one of this thread's that is neither current
// nor home.
TSL_HIDDEN void tsl_remote_put(uint32_t owner, unsigned class, void *block);

// The same for a block up to TSL_TINY_LIMIT. The first block of a word of a slab is sent at once;
// up to 63 more of the word wait in the gather, until a block of another word comes. Blocks of
// epochs that end never wait. The owner of `home`, which is not the empty home.
TSL_HIDDEN void tsl_remote_gather(struct tsl_home *home, uint32_t owner, unsigned class,
                                  void *block);

// Sends what waits in a class's gather, or in all of them. Owner only.
TSL_HIDDEN void tsl_remote_send(struct tsl_home *home, unsigned class);
TSL_HIDDEN void tsl_remote_send_all(struct tsl_home *home);

// Empties the gathers, after tsl_remote_send_all: a fork may have taken the thread while it opened
// one.
TSL_HIDDEN void tsl_remote_forget(struct tsl_home *home);

// Blocks that wait in a class's gather. A moment's value.
TSL_HIDDEN uint32_t tsl_remote_waiting(const struct tsl_home *home, unsigned class);

// The same, of a part, whose number is stored in `*part`. 0 where a home's blocks wait, and where
// the gather changes meanwhile.
TSL_HIDDEN uint32_t tsl_remote_waiting_for(const struct tsl_home *home, unsigned class,
                                           uint32_t *part);

// Each gather is whole: nothing waits that it was not opened for. Owner only.
TSL_HIDDEN bool tsl_remote_valid(const struct tsl_home *home);
