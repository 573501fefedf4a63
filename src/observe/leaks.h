// leaks: epochs that ended and did not drain.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// One line on stderr for each label of closed epochs in which objects live. Returns how many there
// are. Changes nothing. One thread at a time.
TSL_HIDDEN size_t tsl_leaks_report(void);
