// helper: an optional thread (option `helper`) that gives unneeded memory back while the program
// idles. It starts at the first slow allocation after it is asked for, never in a constructor; a
// fork's child starts its own.
#pragma once

#include "base/compiler.h"
#include "base/options.h"

TSL_HIDDEN void tsl_helper_start(void);

// The child of a fork has no helper yet.
TSL_HIDDEN void tsl_helper_after_fork(void);

// Called where an allocation is slow anyway, and no structure is in the middle of a change.
static inline void tsl_helper_ensure(void) {
  if (tsl_unlikely(tsl_option(helper) != 0)) tsl_helper_start();
}
