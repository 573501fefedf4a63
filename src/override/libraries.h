// libraries: what the C library, the loader and the C++ runtime allocate for themselves. They keep
// much of it longer than the work in which they made it, so it lies in the default epoch, wherever
// the thread is. What they give to the program to free lies there, too.
#pragma once

#include "base/compiler.h"

// Leads the libraries' calls of malloc to functions that allocate in the default epoch. Any thread;
// a second call has the same effect.
TSL_HIDDEN void tsl_libraries_part(void);
