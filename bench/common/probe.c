#include "probe.h"

#include "latency.h"

void probe_merge(probe *into, const probe *from) {
  histogram_merge(&into->batches, &from->batches);
  histogram_merge(&into->singles, &from->singles);
}

void probe_report(const char *prefix, const probe *p, double ns_per_tick) {
  static const struct {
    const char *name;
    double share;
  } marks[] = {{"single_p50", 0.5}, {"p95", 0.95},     {"p99", 0.99},
               {"p999", 0.999},     {"p9999", 0.9999}, {"p99999", 0.99999}};
  latency_report_one(prefix, "batch_p50", probe_batch_p50_ns(p, ns_per_tick));
  latency_report_one(prefix, "mean", probe_mean_ns(p, ns_per_tick));
  for (unsigned i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    latency_report_one(prefix, marks[i].name, latency_ns(&p->singles, marks[i].share, ns_per_tick));
  }
  latency_report_one(prefix, "max", (double)p->singles.max * ns_per_tick);
}
