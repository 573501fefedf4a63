// face: what a copy of the library is to the program it is in: `tslab_*` alone (libtslab.so), or
// malloc as well (libtslab-preload.so, libtslab.a).
//  F1  every copy has one of override/alone.c, override/libc.c and override/none.c. So whoever
//      links any part of the archive links its malloc, too
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// The text that this copy's tslab_version returns.
TSL_HIDDEN extern const char tsl_face_version[];

// Called once, after the options are known. When another copy's names come first in the process,
// this one says so on stderr and has no statistics, whose file is the other's.
TSL_HIDDEN void tsl_face_look_for_first(void);

// The program enters a scope. When malloc is not this copy's, one line on stderr says so, once,
// unless option `on_error` is `ignore`.
TSL_HIDDEN void tsl_face_expect_capture(void);

// The next three are defined by the one file of F1.

// Whether the program's malloc is this copy's.
TSL_HIDDEN bool tsl_face_captures(void);

// Called once, before the process's first allocation by this copy.
TSL_HIDDEN void tsl_face_begin(void);

// What a program does whose malloc is to be the library's.
TSL_HIDDEN extern const char *const tsl_face_remedy;
