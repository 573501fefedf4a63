// Percentiles of malloc or free in nanoseconds, as every latency program reports them.
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "histogram.h"

static inline double latency_ns(const histogram *h, double share, double ns_per_tick) {
  return (double)histogram_quantile(h, share) * ns_per_tick;
}

// Adds PREFIX_p50_ns, _p99_ns, _p999_ns, _p9999_ns, _max_ns and _mean_ns to the open report. The
// counter may advance in steps of many nanoseconds: percentiles then are whole steps, and only the
// mean tells neighbours apart.
void latency_report(const char *prefix, const histogram *h, double ns_per_tick);

// Adds PREFIX_NAME_ns to the open report.
void latency_report_one(const char *prefix, const char *name, double ns);

#endif
