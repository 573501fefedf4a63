// regulars: the hosts below which a thread opens epochs again and again. Guests come to these
// alone: a host keeps at hand what a guest needs, and what guests left, until it ends. A thousand
// tenants would each keep it. So a thread has few regulars, and none makes room before it ends.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Times; between two of them the thread came to fewer than TSL_HOME_REGULARS other hosts.
enum { TSL_REGULARS_OFTEN = 8 };

// The thread opens an epoch that the one in slot `host` could take in. Whether that is a regular by
// now. Threads without a home are told that it is not.
TSL_HIDDEN bool tsl_regulars_come(uint32_t host);
