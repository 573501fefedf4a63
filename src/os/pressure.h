// pressure: whether threads wait for memory, as the kernel's pressure stall information (PSI) tells
// it: for the process's control group (version 2), and for the whole system.
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Whether some thread waited for memory in a tenth or more of the last ten seconds; false where the
// kernel does not tell. Opens files; no memory is allocated.
TSL_HIDDEN bool tsl_pressure_is_high(void);

// The percentage after "some avg10=" of a file of PSI, without its fraction; 0 when there is none.
TSL_HIDDEN unsigned tsl_pressure_parse(const char *text);
