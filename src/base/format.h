// format: a printf for places where the libc's may allocate or take locks.
// Knows %s %c %d %u %zu %p %x %% and %llu; everything else is a mistake of ours and stops debug
// builds.
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"

// Writes at most size-1 bytes and a NUL. Returns the length written.
TSL_HIDDEN size_t tsl_format(char *buffer, size_t size, const char *format, ...) TSL_PRINTF(3, 4);
TSL_HIDDEN size_t tsl_format_list(char *buffer, size_t size, const char *format, va_list list);
