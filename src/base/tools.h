// tools: what watches each read and write of the program: AddressSanitizer, when the program was
// built with it, or Valgrind's memcheck, when it runs there. They are told of memory that ends and
// of memory that begins again, so that they report who uses an object of a released epoch. The
// hardened build, which writes to free memory, tells them nothing.
//
//  TO1  cells, slabs and large blocks end as they are given back, and begin, each as a whole, as
//       they are taken. In between the library neither reads nor writes them
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// Whether a tool watches. [const] Set once, as the library is initialised.
TSL_HIDDEN extern bool tsl_tools_watch;
TSL_HIDDEN void tsl_tools_init(void);

TSL_HIDDEN void tsl_tools_tell(uintptr_t start, size_t bytes, bool ends) TSL_COLD;

// Nothing lives there any more.
static inline void tsl_tools_end(uintptr_t start, size_t bytes) {
  if (tsl_unlikely(tsl_tools_watch)) tsl_tools_tell(start, bytes, true);
}

// It is handed out again.
static inline void tsl_tools_begin(uintptr_t start, size_t bytes) {
  if (tsl_unlikely(tsl_tools_watch)) tsl_tools_tell(start, bytes, false);
}
