// loader: calls from one library of the process to another, led elsewhere. The loader keeps the
// address of each function that a library calls in a table of that library.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct tsl_redirect {
  const char *name;  // of the function
  uintptr_t now;     // where calls of it lead
  uintptr_t to;      // where they are to lead
};

// Leads the calls of the C library, the loader and the C++ runtime elsewhere, as far as they are
// loaded. Other libraries, and the program itself, call what they called before. Calls that other
// threads make meanwhile lead to the one or the other. No effect where the system refuses, in
// programs that are linked statically, and with C libraries other than glibc.
TSL_HIDDEN void tsl_loader_redirect(const struct tsl_redirect *redirects, size_t count);
