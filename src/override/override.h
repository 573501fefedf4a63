// override: how the library stands in for other libraries' functions.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// A symbol of another library that this one defines. It has no prototype here: the headers that
// declare these names differ between C libraries in attributes and exception specifications.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define FACE TSL_EXPORT

#define ALIAS(target, name) \
  extern __typeof__(target) name TSL_EXPORT __attribute__((alias(#target))) TSL_COPY(target)

// This copy's malloc, also where the name `malloc` is another library's.
TSL_HIDDEN extern void *tsl_own_malloc(size_t bytes);
