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

// For fork: no thread initialises the library between the two.
TSL_HIDDEN void tsl_thread_lock(void);
TSL_HIDDEN void tsl_thread_unlock(void);
