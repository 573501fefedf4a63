// misuse: what the program is told about a mistake that it made with a block: what was wrong, the
// size of the block's class, its epoch with the label, and who called. One line; option `on_error`
// decides whether there is one, and what follows. Needs no lock and no memory.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// free() of a block that is free.
TSL_HIDDEN void tsl_misuse_twice(const void *block) TSL_COLD;

// A block that its heap's thread freed, and another thread as well.
TSL_HIDDEN void tsl_misuse_both(const void *block) TSL_COLD;

// free() of an address inside a block, or of one that was never handed out.
TSL_HIDDEN void tsl_misuse_interior(const void *block) TSL_COLD;

// `call` of an address that is nobody's.
TSL_HIDDEN void tsl_misuse_foreign(const char *call, const void *block) TSL_COLD;

// free() with a size that the block cannot have been asked for.
TSL_HIDDEN void tsl_misuse_size(const void *block, size_t said, size_t usable) TSL_COLD;

// A free block that is not as its free left it.
TSL_HIDDEN void tsl_misuse_written(const void *block) TSL_COLD;

// A live block whose end, or what lies before its beginning, was written to.
TSL_HIDDEN void tsl_misuse_overflow(const void *block) TSL_COLD;
