#include "rate.h"

void rate_report(const rate *r) {
  double per_s = (double)r->count / r->scale * 1e9 / (double)r->ns;
  report_open(r->program);
  report_count("threads", r->threads);
  report_count("count", r->count);
  report_real("rate", per_s);
  report_text("unit", r->unit);
  report_close("%s, %u threads: %.3f %s", r->program, r->threads, per_s, r->unit);
}
