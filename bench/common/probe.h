// One operation timed in two ways: in batches for its median and mean, in which the timer has no
// part, and alone for its tail, in which the timer's floor is included.
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include "latency.h"

#define PROBE_BATCH 64u

typedef struct probe {
  histogram batches;  // ticks of PROBE_BATCH operations each
  histogram singles;
} probe;

static inline double probe_batch_p50_ns(const probe *p, double ns_per_tick) {
  return latency_ns(&p->batches, 0.5, ns_per_tick) / PROBE_BATCH;
}

static inline double probe_mean_ns(const probe *p, double ns_per_tick) {
  return (double)p->batches.sum / (double)p->batches.count * ns_per_tick / PROBE_BATCH;
}

void probe_merge(probe *into, const probe *from);

// Adds PREFIX_batch_p50_ns and _mean_ns, of batches, and _single_p50_ns, _p95_ns, _p99_ns,
// _p999_ns, _p9999_ns, _p99999_ns and _max_ns, of single operations, to the open report.
void probe_report(const char *prefix, const probe *p, double ns_per_tick);

#endif
