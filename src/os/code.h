// code: where the library's code lies, by which readers know its calls when the process has gone.
#pragma once

#include <stdint.h>

#include "base/compiler.h"

struct tsl_code {
  uintptr_t start, end;
};

// Of a shared library of the allocator's own (override/shared.c, which replaces what os/code.c
// says). Nothing in a program that has the allocator in it: what lies beside it there is the
// program's.
TSL_HIDDEN struct tsl_code tsl_code_place(void);
