// Which events the slowest allocations met: what the system says of each call, and what the
// allocator counts meanwhile. Asking about each call disturbs the caches, so these calls are no
// part of the percentiles.
#ifndef BENCH_TAIL_H
#define BENCH_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tail {
  uint64_t faults;       // page faults inside of all calls
  uint64_t slow;         // calls at or above the 99.9th percentile of these calls; of them
  uint64_t faulted;      // those with a page fault,
  uint64_t switched;     // those without, but with a switch to another thread,
  uint64_t opened_slab;  // those with neither, but which opened a slab,
  uint64_t refilled;     // which otherwise filled the empty bin,
  uint64_t others;       // and the rest
  bool is_told;          // by the allocator; otherwise what follows is 0
  uint64_t refills;      // of all calls: those that filled the empty bin,
  uint64_t opened;       // of them those that opened a slab
  uint64_t slow_paths;   // of all calls, frees included
  uint64_t returned;     // frees that met a full bin
} tail;

// Allocates `count` blocks of `bytes` bytes and frees them.
void tail_run(tail *t, uint64_t count, size_t bytes);

// Names the event that most of the slow calls met.
const char *tail_cause(const tail *t);

#endif
