// Which allocator this process runs on: asked of the process itself, so that no run can pretend.
#ifndef BENCH_ALLOCATOR_H
#define BENCH_ALLOCATOR_H

#include <stddef.h>

// The file name, without folders, of the object that defines the malloc in use.
const char *allocator_file(void);

// As that object tells it; "unknown" when it has no way to.
void allocator_version(char *text, size_t capacity);

#endif
