// mend: heaps whose threads a fork took in the middle of a fast path. Anything else that a thread
// does is not stopped half way: `inside` says where a heap is set aside as it is.
#pragma once

#include "base/compiler.h"

struct tsl_heap;

// Makes such a heap whole. Who owns it now.
TSL_HIDDEN void tsl_heap_mend(struct tsl_heap *heap);
