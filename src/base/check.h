// check: what happens when an expectation does not hold.
//  tsl_assert     debug level 1 and up, O(1): our own mistakes
//  tsl_invariant  debug level 2, may walk structures: our own mistakes
//  tsl_misuse     always on: mistakes of the program (double free, foreign pointer); option
//                 `on_error` decides
// All of them are compiled in every build. Nothing here allocates, and nothing is repaired.
#pragma once

#include "base/compiler.h"

#define tsl_assert(condition)                                                              \
  do {                                                                                     \
    if (TSL_DEBUG >= 1 && !(condition)) tsl_assert_failed(#condition, __FILE__, __LINE__); \
  } while (0)

#define tsl_invariant(condition)                                                           \
  do {                                                                                     \
    if (TSL_DEBUG >= 2 && !(condition)) tsl_assert_failed(#condition, __FILE__, __LINE__); \
  } while (0)

TSL_HIDDEN void tsl_assert_failed(const char *condition, const char *file, int line)
    __attribute__((noreturn, cold));

// Reports a mistake of the program on stderr and aborts, reports and returns, or returns: option
// `on_error`.
TSL_HIDDEN void tsl_misuse(const char *format, ...) TSL_PRINTF(1, 2) __attribute__((cold));
