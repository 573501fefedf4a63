// thread: gives a thread its home, and takes it back when the thread ends.
#pragma once

#include <stdbool.h>

#include "state/heap.h"

// The time for which a thread that had no heap has one.
struct tsl_lease {
  struct tsl_home *home;  // to give back when the stay ends; NULL when the thread keeps it
};

// Reads the options that the environment sets, which the first allocation does otherwise: before
// one is asked for or set. Any thread.
TSL_HIDDEN void tsl_thread_read_options(void);

// The rest of tsl_thread_leave, where the thread does not keep its home.
TSL_HIDDEN void tsl_thread_give_back(struct tsl_home *home);

// Gives the calling thread a home: for good, or until tsl_thread_leave once its destructor ran.
// False when memory is out.
TSL_HIDDEN bool tsl_thread_enter(struct tsl_lease *lease);
TSL_ALWAYS_INLINE void tsl_thread_leave(const struct tsl_lease *lease) {
  if (tsl_unlikely(lease->home != NULL)) tsl_thread_give_back(lease->home);
}

// Gives the calling thread, which has no heap, one for good. False when it cannot keep it.
TSL_HIDDEN bool tsl_thread_join(void);

// The same as tsl_thread_enter for a thread that may have a heap.
TSL_ALWAYS_INLINE bool tsl_thread_ensure(struct tsl_lease *lease) {
  return tsl_likely(tsl_heap_current != &tsl_home_empty.heap) || tsl_thread_enter(lease);
}
