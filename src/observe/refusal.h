// refusal: what holds memory when the system refuses more.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// Says so on stderr, with the labels and size classes that hold most and the call stacks that do by
// samples, if option `verbose` is set: once in a process, for the first call. `bytes` were asked
// for. Allocates nothing, takes no lock and changes nothing; figures are a moment's. Any thread.
TSL_HIDDEN void tsl_refusal_report(size_t bytes) TSL_COLD;
