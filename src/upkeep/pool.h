// pool: the homes whose threads have ended, with their parts. The next new thread takes one.
#pragma once

#include "state/heap.h"

// A home for the calling thread: a pooled one, still warm, or a new one. NULL when memory is
// out.
TSL_HIDDEN struct tsl_home *tsl_home_take(void);

// Puts the home of a thread that ends into the pool, with all its blocks. Its owner.
TSL_HIDDEN void tsl_home_pool(struct tsl_home *home);

// Looks at one pooled home, and gives back what became free there. Any thread; bounded.
TSL_HIDDEN void tsl_pool_look(void);

// Puts all that a home keeps hot back in its slabs, where it is in the pool. The helper.
TSL_HIDDEN void tsl_pool_rest(struct tsl_home *home);

// Calls `visit` with every heap that is in the pool, as its owner. Any thread.
TSL_HIDDEN void tsl_pool_visit(void (*visit)(struct tsl_home *));

// In the child of a fork: empties the pool. Its homes are adopted with those of the lost threads
// (epoch/orphans.h).
TSL_HIDDEN void tsl_pool_forget(void);
