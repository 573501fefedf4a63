// choice: which mutant of the sources this process runs; 0 is none. tools/mutants.py puts it before
// every source that it rewrites.
#pragma once

#include <stdbool.h>

// Asked at each rewritten place. The place counts as reached.
__attribute__((visibility("hidden"))) bool tsl_mutant_is(unsigned number);
