// tended: the test is the helper, in a process in which homes can be tended.
#pragma once

#include "base/options.h"
#include "os_fake.h"

enum { TENDED_DELAY_MS = 100 };  // `purge_delay_ms`

static inline void tended_begin(void) {
  tsl_options.purge_delay_ms = TENDED_DELAY_MS;
  tsl_options.helper = TSL_HELPER_NEVER;
  os_fake.now_ms = 1000;
  os_fake.has_barrier = true;
}
