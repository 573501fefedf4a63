// remote: frees by threads that the block's heap does not belong to. Each is one atomic operation
// on the slab's word; blocks that come home in a row share one. The first block that arrives in a
// home heap's slab, up to TSL_TINY_LIMIT, sets TSL_CODE_VISITED in the map. While it is set, the
// owner's frees there are compared with what others freed.
#pragma once

#include "epoch/heap.h"

// Puts back a block of another thread's heap, or of one of this thread's that is neither current
// nor home.
TSL_HIDDEN void tsl_remote_put(uint32_t owner, unsigned class, void *block);

// The same for a block up to TSL_TINY_LIMIT. A second block of the same word of a home heap's slab
// waits in the gather, and with it all that follow, until a block of another word comes: 63 of a
// class at most. Blocks of declared epochs never wait. The owner of `home`, which is not the empty
// heap.
TSL_HIDDEN void tsl_remote_gather(struct tsl_heap *home, uint32_t owner, unsigned class,
                                  void *block);

// Whether a block is free in its slab, or waits in the gather of the thread that gathered from the
// slab last. Never true of a live one. Any thread.
TSL_HIDDEN bool tsl_remote_has_free(uint32_t owner, unsigned class, const void *block);

// Sends what waits in a class's gather, or in all of them. Owner only.
TSL_HIDDEN void tsl_remote_send(struct tsl_heap *home, unsigned class);
TSL_HIDDEN void tsl_remote_send_all(struct tsl_heap *home);

// Waits for nothing any more: a fork may have taken the thread while it began to. After the above.
TSL_HIDDEN void tsl_remote_forget(struct tsl_heap *home);

// Blocks that wait in a class's gather. A moment's value.
TSL_HIDDEN uint32_t tsl_remote_waiting(const struct tsl_heap *home, unsigned class);
