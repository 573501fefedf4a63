// What the process's allocator counts, as it tells in its statistics file (tslab_stats.h); peers
// have no such file. It is read, not mapped: a second mapping would count as resident.
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <tslab_stats_file.h>

typedef enum counter {
  COUNTER_OPENED,    // slabs since the start
  COUNTER_SLABS,     // open now
  COUNTER_REFILLS,   // empty bins that were filled
  COUNTER_CELLS,     // taken by epochs
  COUNTER_ANEW,      // cells that were begun anew
  COUNTER_RETURNED,  // frees that met a full bin
  COUNTER_SENT,      // frees of other threads' blocks
  COUNTER_LARGE,     // allocations of whole units
  COUNTER_SAMPLED,   // allocations that were sampled
  COUNTERS
} counter;

typedef struct counters {
  tslab_reader reader;  // without a file: nothing is told
  tslab_reader_column columns[COUNTERS];
} counters;

// Asks for the file, which a process otherwise makes once it is older or larger.
void counters_demand(void);

// Finds the file that a demand has made.
counters counters_open(void);

static inline bool counters_are_known(const counters *c) { return c->reader.file >= 0; }

// Over all threads, and classes. 0 when nothing is told.
uint64_t counters_sum(const counters *c, counter which);

// Allocations and frees that left the fast path. What a thread did since the last refill of a class
// is missing.
uint64_t counters_slow_paths(const counters *c);

#endif
