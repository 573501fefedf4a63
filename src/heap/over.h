// over: tells the program that an epoch is over, where it asked for that. The program's code runs
// on the thread that retired the epoch, or at a later tick of any thread where that one held a lock
// or was in the middle of a change (C3).
#pragma once

#include <stdint.h>

#include "base/compiler.h"

// Calls the callback of an epoch that has retired, or has it wait. Takes its slot, which goes back.
TSL_HIDDEN void tsl_over_tell(uint32_t slot);

// Calls those that wait. At the end of a tick.
TSL_HIDDEN void tsl_over_tell_waiting(void);
