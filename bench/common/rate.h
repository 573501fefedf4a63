// The report of a program whose result is one throughput.
#ifndef BENCH_RATE_H
#define BENCH_RATE_H

#include "report.h"

typedef struct rate {
  const char *program;
  const char *unit;  // without spaces
  unsigned threads;
  uint64_t count;
  double scale;  // how many of what is counted make one of the unit
  uint64_t ns;
} rate;

void rate_report(const rate *r);

#endif
