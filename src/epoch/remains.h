// remains: cells and slabs of closed epochs in which objects live on. After a while the pages in
// which none of these lies go back to the system.
//
//  M1  what is looked at is held: it counts one block more, so that it cannot go back meanwhile;
//      whoever brings the count to zero gives it back, as ever
//  M2  a release, which gives back without counting, does so under the same lock
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Looks at some memory of the region, at most once a millisecond for the whole process. What was
// closed for option `purge_delay_ms`, and is half free, gives its dead pages back; again when half
// of its blocks have gone since. Bounded. True while something young may be due soon. Any thread.
TSL_HIDDEN bool tsl_remains_step(void);

// A seal left something.
TSL_HIDDEN void tsl_remains_expect(void);

// Whether a seal did, and no round over the region has begun since which found nothing young.
TSL_HIDDEN bool tsl_remains_wait(void);

// No step between the two: for a release, and for fork.
TSL_HIDDEN void tsl_remains_lock(void);
TSL_HIDDEN void tsl_remains_unlock(void);
