// remains: cells and slabs of closed epochs in which objects live on. After a while the pages in
// which none of these lies go back to the system.
//
//  M1  what gives pages back is held: it counts one block more, so that it cannot go back itself
//      meanwhile; whoever brings the count to zero does that, as ever
//  M2  a release, which gives back without counting, excludes holds by a lock
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Looks at some memory of the region, at most once a millisecond for the whole process. What was
// closed for option `purge_delay_ms`, and is half free, gives its dead pages back; again when half
// of its blocks have gone since. Bounded. Any thread.
TSL_HIDDEN void tsl_remains_step(void);

// A seal left something of an epoch.
TSL_HIDDEN void tsl_remains_expect(uint32_t epoch);

// Whether something may be due that no round over the region has met yet.
TSL_HIDDEN bool tsl_remains_wait(void);

// Nothing is held between the two: for a release.
TSL_HIDDEN void tsl_remains_lock(void);
TSL_HIDDEN void tsl_remains_unlock(void);

// In the child of a fork: takes over what a thread held that the child does not have, and lets it
// go.
TSL_HIDDEN void tsl_remains_after_fork(void);
TSL_HIDDEN void tsl_remains_let_go(void);
