// face: which functions a copy of the library gives the program: `tslab_*` alone (libtslab.so), or
// malloc as well (libtslab-preload.so, libtslab.a).
//  A1  every copy has one of override/alone.c, override/first.c and override/none.c, and calls it.
//      So a program that links any part of the archive links its malloc, too
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// The text that this copy's tslab_version returns.
TSL_HIDDEN extern const char tsl_face_version[];

// Called once, after the options are known. When the names of another copy come first in the
// process, this copy says so on stderr, and writes no statistics: the file is the other's.
TSL_HIDDEN void tsl_face_look_for_first(void);

// The program enters a scope, or allocates by an epoch's id. The first time, the libraries' own
// allocations are led out of epochs, unless option `libraries` says otherwise.
TSL_HIDDEN void tsl_face_expect_epoch(void);

// The same for a scope. When malloc is not this copy's, one line on stderr says so, once, unless
// option `on_error` is `ignore`.
TSL_HIDDEN void tsl_face_expect_capture(void);

// The next four are defined by the one file of A1.

// Whether the program's malloc is this copy's.
TSL_HIDDEN bool tsl_face_captures(void);

// Leads what other libraries allocate for themselves out of epochs, where malloc is this copy's.
// Any thread; a second call has the same effect.
TSL_HIDDEN void tsl_face_part_libraries(void);

// Called once, before the process's first allocation by this copy.
TSL_HIDDEN void tsl_face_begin(void);

// The end of that line: what to change so that the program's malloc is this copy's.
TSL_HIDDEN extern const char *const tsl_face_remedy;
