// Equal blocks, allocated one after the other and freed in the same order. Blocks are written
// outside the timed part: first touches of their pages are the kernel's time, not malloc's. In
// fresh memory that holds for single calls only: a batch runs ahead of the writes, and where malloc
// itself writes beside blocks, it meets the pages first.
#ifndef BENCH_FILL_H
#define BENCH_FILL_H

#include "probe.h"

#include <stddef.h>

typedef struct fill {
  char **blocks;
  uint64_t count;
  size_t bytes;
  probe *mallocs;
  probe *frees;
  char *pin;  // a block behind the first fill that stays: heaps that could shrink behind a fill
              // would otherwise never meet memory that was used before
} fill;

// Times each call on its own.
void fill_run_singles(fill *f);

// Times PROBE_BATCH calls at a time; those left over at the end are not timed.
void fill_run_batches(fill *f);

#endif
