// resume: an unwinding goes on behind code without unwind tables, such as a program compiles while
// it runs. Such code keeps frame pointers as a rule. x86-64 only: on other processors nothing is
// resumed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// The caller of code without tables, as it is after the call.
struct tsl_resume {
  uintptr_t call;   // the return address
  uintptr_t stack;  // the stack pointer
  uintptr_t frame;  // the frame pointer, or anything where the caller has none
};

// Whether `address` is that behind a call instruction. Nothing happens where it cannot be read.
TSL_HIDDEN bool tsl_resume_is_behind_call(uintptr_t address);

// Whether the code at `address` only takes bytes off the stack and returns, and how many. So do the
// functions that CPython generates for `perf`, which have no frame pointers before version 3.14.
TSL_HIDDEN bool tsl_resume_is_return(uintptr_t address, uintptr_t *bytes);

// As _Unwind_Backtrace, whose types these are: `walk` is called for this function, for `from` and
// for its callers.
TSL_HIDDEN int tsl_resume_backtrace(const struct tsl_resume *from, void *walk, void *argument);
