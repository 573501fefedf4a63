// rounds: the helper tends the homes of all threads, whether these run or sleep, one after the
// other, each with its parts, and gives dead pages of their sparse slabs back
// (sparse.h). By the helper alone.
//
//  RO1  a home is tended when its slabs, or those of its parts, have other free
//       blocks than at its last round, and again while one of them waits for its delay; but no
//       round begins sooner than `purge_delay_ms` after the last one, unless the owner, in a
//       change, refused that: a round slows the owner down (decision 022). Also when all of its
//       warm parts have waited for their delay (W3)
//  RO2  a round over a home that opened no slab since the last one takes the empty units that it
//       has at hand; one over a home that was in the pool at the last one, too, puts what is hot
//       back in its slabs. Each gives back warm parts that are due
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Some turns of rounds, or none; between two of them owners go on. True when that was not enough.
TSL_HIDDEN bool tsl_rounds_step(void);

// Whether a thread made blocks of its slabs free after its home's last round began. Any thread.
TSL_HIDDEN bool tsl_rounds_are_missing(void);

// When the next step is due: 0, at once, until all homes were looked at and none had a round; then
// with the first round of one that waits for it; UINT64_MAX: none does.
TSL_HIDDEN uint64_t tsl_rounds_due_ms(void);

// Whether slabs of some home wait for their delay.
TSL_HIDDEN bool tsl_rounds_wait(void);

// In the child of a fork: the helper, which tended a home perhaps, is lost.
TSL_HIDDEN void tsl_rounds_after_fork(void);
