#include "probe.h"

#include "report.h"

#include <stdio.h>

void probe_merge(probe *into, const probe *from) {
  histogram_merge(&into->batches, &from->batches);
  histogram_merge(&into->singles, &from->singles);
}

static void probe_report_one(const char *prefix, const char *name, double ns) {
  char key[64];
  snprintf(key, sizeof key, "%s_%s_ns", prefix, name);
  report_real(key, ns);
}

void probe_report(const char *prefix, const probe *p, double ns_per_tick) {
  static const struct {
    const char *name;
    double share;
  } marks[] = {{"single_p50", 0.5}, {"p95", 0.95},     {"p99", 0.99},
               {"p999", 0.999},     {"p9999", 0.9999}, {"p99999", 0.99999}};
  probe_report_one(prefix, "batch_p50", probe_batch_p50_ns(p, ns_per_tick));
  probe_report_one(prefix, "mean", probe_mean_ns(p, ns_per_tick));
  for (unsigned i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    probe_report_one(prefix, marks[i].name, latency_ns(&p->singles, marks[i].share, ns_per_tick));
  }
  probe_report_one(prefix, "max", (double)p->singles.max * ns_per_tick);
}
