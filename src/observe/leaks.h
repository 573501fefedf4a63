// leaks: epochs that ended and did not drain.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// One line on stderr for each closed epoch in which objects live. Returns how many there are.
// Changes nothing.
TSL_HIDDEN size_t tsl_leaks_report(void);
