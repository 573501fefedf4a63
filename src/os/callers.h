// callers: who called. Addresses are return addresses, innermost first.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Where no build system says otherwise there is one.
#ifndef TSL_HAS_UNWINDER
#define TSL_HAS_UNWINDER 1
#endif

// The calls above the frame at `frame` (of __builtin_frame_address), as frame pointers tell them:
// wrong where code without them is among the callers, but never beyond the thread's stack. Needs a
// few loads a call. Returns their number, at most `most`; 0 on a stack whose end is not known.
TSL_HIDDEN unsigned tsl_callers_walk(const void *frame, uintptr_t *calls, unsigned most);

// The same as the unwinder told it of these calls before, without frame pointers as well; wrong
// where the frame of one of the functions had another size then, and what lies in its place now is
// a known call. 0 when one of the calls is not known. Needs a look into a table a call.
TSL_HIDDEN unsigned tsl_callers_recall(const void *frame, uintptr_t *calls, unsigned most);

// The calls above the function that is `skipped` above this one, by the unwind tables that C++
// exceptions use: right, but a hundred times as dear. 0 where there are none. May allocate.
TSL_HIDDEN unsigned tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most);

// In the child of a fork the unwinder of a program that is linked statically may be locked for
// ever: it is not asked any more.
TSL_HIDDEN void tsl_callers_after_fork(void);
