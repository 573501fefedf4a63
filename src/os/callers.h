// callers: the call stack of the calling thread, as return addresses, innermost first.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Follows the frame pointers from `frame` (of __builtin_frame_address). The result is wrong where a
// caller was compiled without them, but no read goes beyond the thread's stack. Costs a few loads a
// call. Returns the number of calls, at most `most`; 0 on a stack whose end is not known.
TSL_HIDDEN unsigned tsl_callers_walk(const void *frame, uintptr_t *calls, unsigned most);

// Follows the frame sizes that tsl_callers_unwind learned (frames.h), which needs no frame
// pointers. The result is wrong where a function's frame now has another size, and the word in that
// place happens to be a known return address. 0 when one of the calls is not known. Costs one table
// look-up a call.
TSL_HIDDEN unsigned tsl_callers_recall(const void *frame, uintptr_t *calls, unsigned most);

// Follows the unwind tables that C++ exceptions use, from the function `skipped` calls above this
// one. The result is right, but costs a hundred times as much. It goes on behind code without
// tables by that code's frame pointers, where these lead to the end of the stack (x86-64 only). 0
// where there are no tables. May allocate.
TSL_HIDDEN unsigned tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most);

// In the child of a fork: a program that is linked statically does not call its unwinder any more,
// whose lock a lost thread may hold.
TSL_HIDDEN void tsl_callers_after_fork(void);
