// The epoch that a thread's requests allocate in at the moment: opened for the first of a batch,
// closed after the last. Counts what must outlive each close, to compare with what the close says.
#ifndef BENCH_SYNTHETIC_PERIOD_H
#define BENCH_SYNTHETIC_PERIOD_H

#include "synthetic/settings.h"

typedef struct period {
  const settings *settings;
  tslab_epoch epoch;
  tslab_scope scope;
  uint64_t opened;     // periods so far; the number of this one
  uint32_t requests;   // in this one; 0: it is not open
  uint64_t living;     // objects of this one
  uint64_t left;       // objects that lived when their period was closed
  uint64_t survivors;  // as the closes tell it
} period;

// Around each request. Nothing happens where there are no epochs.
void period_enter(period *p);
void period_leave(period *p);

// At the end of the run: closes a batch that is not complete.
void period_end(period *p);

#endif
