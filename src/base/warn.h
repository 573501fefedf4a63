// warn: one line on stderr, where nothing may allocate.
#pragma once

#include <stdarg.h>

#include "base/compiler.h"

// The library's name, then the text, at most 512 bytes. Supports what base/format.h supports. Keeps
// errno.
TSL_HIDDEN void tsl_warn(const char *format, ...) TSL_PRINTF(1, 2) __attribute__((cold));
TSL_HIDDEN void tsl_warn_list(const char *format, va_list list) __attribute__((cold));
