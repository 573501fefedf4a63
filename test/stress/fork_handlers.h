// fork_handlers: a library whose constructor registers fork handlers that allocate and free.
#ifndef TSLAB_TEST_FORK_HANDLERS_H
#define TSLAB_TEST_FORK_HANDLERS_H

#include <stdbool.h>

// Whether they do.
void fork_handlers_allocate(bool wanted);

// Handlers of this process, and of those that it comes from, that allocated so far.
unsigned fork_handlers_ran(void);

#endif
