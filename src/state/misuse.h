// misuse: the messages about a program's mistakes with a block, a scope or an epoch. One line says
// what was wrong, the size of the block's class, the epochs and their labels, and the callers.
// Option `on_error` decides whether the line is written, and whether the program then stops
// (check.h). Takes no lock and no memory.
#pragma once

#include <stddef.h>

#include "base/compiler.h"
#include "tslab.h"

struct tsl_heap;

// free() of a block that is free.
TSL_HIDDEN void tsl_misuse_twice(const void *block) TSL_COLD;

// A block that its heap's thread freed, and another thread as well.
TSL_HIDDEN void tsl_misuse_both(const void *block) TSL_COLD;

// free() of an address inside a block, or of one that was never handed out.
TSL_HIDDEN void tsl_misuse_interior(const void *block) TSL_COLD;

// `call` with an address that is no block's.
TSL_HIDDEN void tsl_misuse_foreign(const char *call, const void *block) TSL_COLD;

// free() with a size that the block cannot have been asked for.
TSL_HIDDEN void tsl_misuse_size(const void *block, size_t said, size_t usable) TSL_COLD;

// A read or a write of `address`, which lies in `block`, by the instruction at `code`; or free() of
// `block`; after the epoch of the block was released.
TSL_HIDDEN void tsl_misuse_late(const void *address, const void *block, const void *code) TSL_COLD;
TSL_HIDDEN void tsl_misuse_late_free(const void *block) TSL_COLD;

// A free block that somebody wrote to.
TSL_HIDDEN void tsl_misuse_written(const void *block) TSL_COLD;

// A live block whose end, or what lies before its beginning, was written to.
TSL_HIDDEN void tsl_misuse_overflow(const void *block) TSL_COLD;

// tslab_scope_leave() of a scope that is not the innermost one of the calling thread. It may never
// have been entered.
TSL_HIDDEN void tsl_misuse_scope(const struct tslab_scope *scope) TSL_COLD;

// The rest damages nothing by itself: each is reported once for each label, unless `on_error` is
// `ignore`, and the program goes on.

// The calling thread ends, and has not left so many scopes in `heap`. `current`: the epoch that it
// was in last.
TSL_HIDDEN void tsl_misuse_forgotten(const struct tsl_heap *heap, tslab_epoch current) TSL_COLD;

// `call` ends an open epoch while the calling thread is in a descendant of it. Nothing is said
// where it is in none.
TSL_HIDDEN void tsl_misuse_inside(const char *call, tslab_epoch id) TSL_COLD;

// An epoch gets the slot TSL_MANY_EPOCHS, once in a process: so many others are not over. Nothing
// is said where fewer than half of them are open: of the others, objects survive.
enum { TSL_MANY_EPOCHS = 1 << 16 };
TSL_HIDDEN void tsl_misuse_many(void) TSL_COLD;
