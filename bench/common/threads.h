// Threads that start together and are timed from that moment to the end of the last.
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include <stdint.h>

#define THREADS_MAX 64u

typedef void (*threads_body)(void *context, unsigned index);

// Returns the nanoseconds between the common start and the last end.
uint64_t threads_run(unsigned count, threads_body body, void *context);

#endif
