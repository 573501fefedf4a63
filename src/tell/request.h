// request: another process asks this one to give idle memory back, by `purge_request` of the table
// `control`. Threads look at it on slow paths, the helper once a second or oftener.
//
//  RQ1  a request is followed once, by the thread that comes first; the field says no more than
//       that there is one: whatever stands there, the process does what tsl_purge_all does, and
//       nothing else (M1)
//  RQ2  `purge_request` of the table `process` has its number once the memory has gone back
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Gives all idle memory back if that is asked for, and returns whether it was. The helper, or a
// thread that finds none; cheap when nothing is asked.
TSL_HIDDEN bool tsl_request_follow(void);

// The same for any thread: no effect while a helper lives.
TSL_HIDDEN void tsl_request_tick(void);

// In the child of a fork, whose file is another one.
TSL_HIDDEN void tsl_request_after_fork(void);
