// helper: a thread that gives unneeded memory back, also while the program idles (option `helper`).
// It is born on a slow path of malloc or free, or at the end of an epoch, once much memory is idle,
// not by the library's constructor, and ends when nothing is left to give. It has no heap.
//
//  HE1  at most one lives. While it lives no other thread gives back what is idle in the process
//  HE2  it uses at most a hundredth of a processor, or a tenth: near the soft limit, or while
//       memory is short, or while the program uses less than a tenth itself. Not counted is what
//       tsl_purge_now or a request (request.h) asks of it. For one step it waits ten seconds at
//       most
//  HE3  while 1 MiB or more can go back it looks once a second whether memory is short
//       (os/pressure.h); what it found holds until it looks again or ends
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Called once, as the library is initialised: a helper may be born from now on, by a thread without
// a home, too, for which `thread_join` makes one, or returns false.
TSL_HIDDEN void tsl_helper_init(bool (*thread_join)(void));

// In the child of a fork, which has no helper yet.
TSL_HIDDEN void tsl_helper_after_fork(void);
