// valid: whether a heap is whole. At debug level 2 heaps are looked at where they change hands.
#pragma once

#include <stdbool.h>

#include "state/heap.h"

// H2, H3, PA1, and all lists and counts. The owner, outside of changes.
TSL_HIDDEN bool tsl_heap_valid(const struct tsl_heap *heap);
