// Which events the slowest allocations met. Asking the system about each call disturbs the caches,
// so these calls are no part of the percentiles.
#ifndef BENCH_TAIL_H
#define BENCH_TAIL_H

#include <stddef.h>
#include <stdint.h>

typedef struct tail {
  uint64_t faults;    // page faults inside of all calls
  uint64_t slow;      // calls at or above the 99.9th percentile of these calls; of them
  uint64_t faulted;   // those with a page fault,
  uint64_t switched;  // those without, but with a switch to another thread,
  uint64_t neither;   // and those with neither
} tail;

// Allocates `count` blocks of `bytes` bytes and frees them.
void tail_run(tail *t, uint64_t count, size_t bytes);

// Names the event that most of the slow calls met.
const char *tail_cause(const tail *t);

#endif
