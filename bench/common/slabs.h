// How many slabs the process's allocator opened, as it tells in its statistics file
// (tslab_stats.h); peers have no such file. It is read, not mapped: a second mapping would count as
// resident.
#ifndef BENCH_SLABS_H
#define BENCH_SLABS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct slabs {
  int file;  // -1: nothing is told
  uint64_t table_at;
  uint64_t rows_at;
  uint32_t row_bytes;
  uint32_t classes;
  uint32_t opened_at;  // of a row
  uint32_t open_at;
} slabs;

typedef struct slab_counts {
  bool are_known;
  uint64_t opened;  // since the start
  uint64_t open;
} slab_counts;

// Asks for the file before the process is as old as processes with one usually are.
void slabs_demand(void);

// Finds the file, which a demand and some allocations have made.
slabs slabs_open(void);

slab_counts slabs_now(const slabs *s);

#endif
