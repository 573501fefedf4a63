// zero: the hardened build's blocks of size 0. Each is an address that nobody can read or write, so
// that any use of it faults. In other builds there are none.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

// An address at a multiple of `alignment`, a power of two. NULL when there is none: in other
// builds, when all TSL_ZERO_BLOCKS are taken, or when the system refuses. Any thread.
enum { TSL_ZERO_BLOCKS = TSL_SECURE ? 65536 : 64 };
TSL_HIDDEN void *tsl_zero_take(size_t alignment);

// Whether the address lies in the range of these blocks: of a taken one or not, at its beginning or
// not.
TSL_HIDDEN bool tsl_zero_contains(const void *address);

// Whether a block begins there and is taken.
TSL_HIDDEN bool tsl_zero_has(const void *block);

enum tsl_zero { TSL_ZERO_FREED, TSL_ZERO_TWICE, TSL_ZERO_INTERIOR };

// Frees what tsl_zero_contains. Any thread.
TSL_HIDDEN enum tsl_zero tsl_zero_free(const void *block);
