// Threads that write small objects of their own: fast unless the allocator put two of them on one
// cache line.
#ifndef BENCH_SHARING_H
#define BENCH_SHARING_H

#include "args.h"

typedef struct sharing {
  const char *program;
  unsigned threads;
  uint64_t objects;  // each thread allocates so many, one after the other
  uint64_t writes;   // and writes each so many times
  char **handed;     // one object a thread, to be freed first; NULL: none
} sharing;

// Fills in what the command line says: THREADS OBJECTS WRITES.
sharing sharing_open(const char *program, const args *a);

uint64_t sharing_run_ns(sharing *s);

// The same, with a report.
void sharing_run(sharing *s);

#endif
