// regulars: the hosts below which a thread opened most of its last epochs. Guests come to these
// alone: a host keeps at hand what a guest needs, and a thousand tenants would each keep it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { TSL_REGULARS_OFTEN = 8 };  // times in a row, others of the few that are kept in between

// The thread opens an epoch that `host` could take in. Whether it did so often of late. By slots:
// an epoch that follows another one in its slot is taken for it. The thread has a home.
TSL_HIDDEN bool tsl_regulars_come(uint32_t host);
