// thread: how threads come to their home heap and what becomes of it when they end.
#pragma once

#include <stdbool.h>

#include "epoch/heap.h"

// A stay of a thread that had no heap.
struct tsl_lease {
  struct tsl_heap *heap;  // to give back when the stay ends; NULL when the thread keeps it
};

// Gives the calling thread a home heap: for good, or, once its destructor ran, for this stay. False
// when memory is out.
TSL_HIDDEN bool tsl_thread_enter(struct tsl_lease *lease);
TSL_HIDDEN void tsl_thread_leave(struct tsl_lease *lease);

// Gives the calling thread, which has no heap, one for good. False when it cannot keep it.
TSL_HIDDEN bool tsl_thread_join(void);

// The same as tsl_thread_enter for a thread that may have a heap.
TSL_ALWAYS_INLINE bool tsl_thread_ensure(struct tsl_lease *lease) {
  return tsl_likely(tsl_heap_current != &tsl_heap_empty) || tsl_thread_enter(lease);
}
