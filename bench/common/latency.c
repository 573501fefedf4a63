#include "latency.h"

#include "report.h"

#include <stdio.h>

void latency_report_one(const char *prefix, const char *name, double ns) {
  char key[64];
  snprintf(key, sizeof key, "%s_%s_ns", prefix, name);
  report_real(key, ns);
}

void latency_report(const char *prefix, const histogram *h, double ns_per_tick) {
  static const struct {
    const char *name;
    double share;
  } marks[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};
  for (unsigned i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    latency_report_one(prefix, marks[i].name, latency_ns(h, marks[i].share, ns_per_tick));
  }
  latency_report_one(prefix, "max", (double)h->max * ns_per_tick);
  latency_report_one(prefix, "mean", (double)h->sum / (double)h->count * ns_per_tick);
}
