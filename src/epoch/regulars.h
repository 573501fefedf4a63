// regulars: the hosts below which a thread opens epochs again and again. Guests come to these
// alone: a host keeps at hand what a guest needs, and a thousand tenants would each keep it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Times; between two of them the thread came to fewer than TSL_HOME_REGULARS other hosts.
enum { TSL_REGULARS_OFTEN = 8 };

// The thread opens an epoch that `host` could take in. Whether this is at least the eighth time. By
// slots: an epoch that follows another one in its slot is taken for it. Threads without a home are
// told that it is not.
TSL_HIDDEN bool tsl_regulars_come(uint32_t host);
