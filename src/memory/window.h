// window: how much free memory nobody needed. A window lasts `purge_delay_ms`; the least amount of
// free dirty memory during it was not needed in it.
//
//  WI1  where at least half of what went back in the last windows was taken again, giving back
//       costs faults and brings nothing. From then on the purge is patient: only what was not
//       needed in TSL_PATIENCE windows together counts, and only at the end of the last of these
//  WI2  patience ends when the program has needed next to nothing for QUIET windows, and after
//       MOST_PATIENT windows without a unit taken again, to see whether waiting still pays
//  WI3  near the soft limit (limit.h) the purge is not patient, and not slow (WI5)
//  WI4  of what was not needed half goes back, where the program is quiet (WI2) three quarters, and
//       4 MiB at least: what a program needs now and then does not all go back in each pause
//  WI5  at first, and after patience, 4 MiB go back at most. The bound becomes four times as high
//       each time that it is reached: whether what went back is taken again shows before the rest
//       follows. It does not hold where the program is quiet
#pragma once

#include <stddef.h>

#include "base/compiler.h"

enum { TSL_PATIENCE = 8 };

// Ends a window in which `low_units` were free and dirty all the time; `units` are at its end.
// Returns how many of them go back. The thread that does the purge's step.
TSL_HIDDEN size_t tsl_window_end(size_t low_units, size_t units);
