// mend: heaps whose threads a fork took in the middle of a fast path. A heap whose thread was in
// the middle of a change is not mended but left as it is (change.h).
#pragma once

#include "base/compiler.h"

struct tsl_heap;

// Makes such a heap whole. Its owner in the child.
TSL_HIDDEN void tsl_heap_mend(struct tsl_heap *heap);
