// outside: a thread's stay in the default epoch while the library calls code of the program or of
// the C library.
#pragma once

#include "state/heap.h"

struct tsl_outside {
  struct tsl_heap *heap;
  tslab_epoch name;  // of the thread's home: it may be a guest's that lies outside of epochs
};

TSL_ALWAYS_INLINE struct tsl_outside tsl_outside_begin(void) {
  struct tsl_heap *current = tsl_heap_current, *home = &current->home->heap;
  struct tsl_outside outside = {current, home->name};
  tsl_heap_current = home;
  if (outside.name == TSLAB_DEFAULT) return outside;
  home->name = TSLAB_DEFAULT;
  home->depth++;  // the code may not leave the guest's scope
  return outside;
}

// The thread had a home when this began.
TSL_ALWAYS_INLINE void tsl_outside_end(struct tsl_outside outside) {
  struct tsl_heap *home = &outside.heap->home->heap;
  tsl_heap_current = outside.heap;
  if (outside.name == TSLAB_DEFAULT) return;
  home->name = outside.name;
  home->depth--;
}
