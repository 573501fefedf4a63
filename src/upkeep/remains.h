// remains: cells and slabs of closed epochs in which objects live on. After a while the pages in
// which none of these lies go back to the system.
//
//  O1  a cell or slab whose pages are given back is held meanwhile: it counts one block more, so
//      that it cannot itself go back. Whoever brings the count to zero gives it back, as always
//  O2  a release gives cells and slabs back without counting: a lock keeps it apart from holds
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// Looks at some units of the region, at most once a millisecond for the whole process. Cells and
// slabs that are half free give their dead pages back `purge_delay_ms` after the close of their
// epoch, and again each time half of their remaining blocks have gone. Bounded; looks at nothing
// before an epoch was closed in which blocks lived. `pace` is 1 for a thread that serves the
// program; with more, so many times as much is done in a millisecond. Any thread.
TSL_HIDDEN void tsl_remains_step(unsigned pace);

// The process took so many units for slabs: the next step does so much more, since what it gives
// back can be taken instead. Any thread.
TSL_HIDDEN void tsl_remains_take(uint32_t units);

// A seal left cells or slabs of the epoch with live blocks: they will be due. About `more_bytes` in
// them are dead, and count as memory that can be given back (memory/purge.h) until a round has met
// them.
TSL_HIDDEN void tsl_remains_expect(uint32_t epoch, size_t more_bytes);

// Whether cells or slabs may be due that were too young when a round or a seal met them.
TSL_HIDDEN bool tsl_remains_wait(void);

// For a release (O2): nothing is held between these two calls.
TSL_HIDDEN void tsl_remains_lock(void);
TSL_HIDDEN void tsl_remains_unlock(void);

// In the child of a fork: takes over the lock and the hold of a lost thread; ends that hold.
TSL_HIDDEN void tsl_remains_after_fork(void);
TSL_HIDDEN void tsl_remains_let_go(void);
