// Servers under load: requests start on a schedule that is fixed beforehand, allocate objects,
// write them and free them, and each one's latency counts from the moment it was to start. So a
// request that waits for a slow one before it is slow, too. What starts late is told, and so is
// what never started: that has no latency. Patterns say what requests do with memory; with
// --rate_factor=max there is no schedule, and latency is that of the request alone.
#include "common/clock.h"
#include "common/epochs.h"
#include "common/hgrm.h"
#include "common/latency.h"
#include "common/memory.h"
#include "common/report.h"
#include "common/shared_epoch.h"
#include "common/threads.h"
#include "common/usage.h"
#include "synthetic/figures.h"
#include "synthetic/resident.h"
#include "synthetic/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRAM "synthetic_bench"
#define GRACE_NS 20000000u  // for the start of all threads

typedef struct synthetic {
  settings settings;
  uint64_t start_ns;
  resident resident;
  usage met;
  server total;
  server servers[];
} synthetic;

static double synthetic_rate(const settings *wanted) {
  return wanted->pattern.request_rate * wanted->rate_factor;
}

static void schedules_set(synthetic *s) {
  unsigned threads = s->settings.threads;
  bool is_open = s->settings.rate_factor > 0;
  double interval_ns = is_open ? 1e9 / synthetic_rate(&s->settings) : 0;
  s->start_ns = clock_ns() + GRACE_NS;
  for (unsigned i = 0; i < threads; i++) {
    s->servers[i].schedule =
        (schedule){.start_ns = s->start_ns,
                   .end_ns = s->start_ns + s->settings.duration_s * 1000000000ull,
                   .interval_ns = interval_ns,
                   .phase_ns = interval_ns * i / threads,
                   .spin_ns = schedule_spin_ns(threads)};
  }
}

static synthetic *synthetic_open(const settings *wanted) {
  synthetic *s = memory_map(sizeof *s + wanted->threads * sizeof s->servers[0]);
  s->settings = *wanted;
  for (unsigned i = 0; i < wanted->threads; i++) {
    server_open(&s->servers[i], &s->settings, i);
  }
  resident_open(&s->resident, wanted->duration_s, wanted->rss_sample_ms);
  schedules_set(s);
  return s;
}

static void synthetic_thread(void *context, unsigned index) {
  synthetic *s = context;
  if (index < s->settings.threads) {
    server_run(&s->servers[index]);
  } else {
    resident_run(&s->resident, s->start_ns);
  }
}

static void synthetic_run(synthetic *s) {
  usage before = usage_now(RUSAGE_SELF);
  threads_run(s->settings.threads + 1, synthetic_thread, s);
  s->met = usage_since(RUSAGE_SELF, &before);
  s->total.counts.lag_least = UINT64_MAX;
  for (unsigned i = 0; i < s->settings.threads; i++) {
    server_merge(&s->total, &s->servers[i]);
  }
}

// An epoch that counts its survivors wrong, or leaves out what leaked, must not yield figures.
// Objects that lag are freed after the close, and are not in the shared epoch any more.
static void survivors_check(const synthetic *s) {
  const period *p = &s->total.period;
  if (!s->settings.has_epochs) {
    return;
  }
  bool lags = s->settings.pattern.lag != 0;
  uint64_t told = p->survivors + (lags ? 0 : shared_epoch_live(s->settings.pattern.name));
  if (told > p->left || (!lags && (told != p->left || told != s->total.counts.leaked))) {
    fprintf(stderr, "the epochs told of %llu survivors; %llu objects lived, %llu were leaked\n",
            (unsigned long long)told, (unsigned long long)p->left,
            (unsigned long long)s->total.counts.leaked);
    exit(1);
  }
}

static void latencies_add(figures *f, const histogram *h) {
  static const struct {
    const char *key;
    double share;
  } marks[] = {{"p50_ns", 0.5},
               {"p95_ns", 0.95},
               {"p99_ns", 0.99},
               {"p999_ns", 0.999},
               {"p9999_ns", 0.9999}};
  for (unsigned i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    figures_count(f, marks[i].key, histogram_quantile(h, marks[i].share));
  }
  figures_count(f, "max_ns", h->max);
}

static void resident_add(figures *f, const resident *r) {
  if (r->count == 0) {
    figures_none(f, "rss_peak_bytes");
    figures_none(f, "rss_growth");
    return;
  }
  figures_count(f, "rss_peak_bytes", resident_peak_bytes(r));
  figures_real(f, "rss_growth", resident_growth(r));
}

static void settings_add(figures *f, const settings *wanted) {
  bool is_open = wanted->rate_factor > 0;
  figures_text(f, "pattern", wanted->pattern.name);
  figures_text(f, "mode", wanted->has_epochs ? "tslab" : "malloc");
  figures_text(f, "loop", is_open ? "open" : "closed");
  figures_count(f, "threads", wanted->threads);
  if (is_open) {
    figures_real(f, "wanted_rate", synthetic_rate(wanted) * wanted->threads);
  } else {
    figures_none(f, "wanted_rate");
  }
}

static void requests_add(figures *f, const server_counts *c, uint32_t duration_s) {
  figures_real(f, "rate", (double)c->requests / duration_s);
  figures_count(f, "requests", c->requests);
  figures_count(f, "late", c->busy);
  figures_count(f, "overslept", c->overslept);
  figures_count(f, "unserved", c->unserved);
}

static figures synthetic_figures(const synthetic *s) {
  figures f = {.program = PROGRAM};
  settings_add(&f, &s->settings);
  requests_add(&f, &s->total.counts, s->settings.duration_s);
  latencies_add(&f, &s->total.latencies);
  resident_add(&f, &s->resident);
  figures_count(&f, "leaked", s->total.counts.leaked);
  if (s->settings.has_epochs) {
    figures_count(&f, "survivors", s->total.period.left);
  } else {
    figures_none(&f, "survivors");
  }
  return f;
}

// What tells how the figures came about.
static void circumstances_report(const synthetic *s) {
  const server_counts *c = &s->total.counts;
  const histogram *starts = &s->total.starts;
  report_count("duration_s", s->settings.duration_s);
  report_count("objects", c->objects);
  report_count("held", c->held);
  report_count("epochs", s->total.period.opened);
  if (c->lag_least != UINT64_MAX) {
    report_count("lag_least", c->lag_least);
    report_count("lag_most", c->lag_most);
  }
  report_count("spin_ns", schedule_spin_ns(s->settings.threads));
  report_count("start_p50_ns", histogram_quantile(starts, 0.5));
  report_count("start_p99_ns", histogram_quantile(starts, 0.99));
  report_count("start_max_ns", starts->max);
  report_count("faults", s->met.faults);
  report_count("switches", s->met.switches);
  report_count("rss_before_bytes", s->resident.before);
  if (s->resident.count != 0) {
    report_count("rss_samples", s->resident.count);
    report_count("rss_sampling_ns", s->resident.sampling_ns / s->resident.count);
  }
}

static void synthetic_report(const synthetic *s, const figures *f) {
  const server_counts *c = &s->total.counts;
  const histogram *h = &s->total.latencies;
  figures_report(f);
  circumstances_report(s);
  report_close(
      "%s, %s loop: %llu requests, p50 %.1f, p99 %.1f, p99.9 %.1f, max %.1f us; %llu started late "
      "behind another, %llu by a late wake-up, %llu never; %llu objects leaked",
      s->settings.pattern.name, s->settings.rate_factor > 0 ? "open" : "closed",
      (unsigned long long)c->requests, latency_ns(h, 0.5, 1e-3), latency_ns(h, 0.99, 1e-3),
      latency_ns(h, 0.999, 1e-3), (double)h->max / 1e3, (unsigned long long)c->busy,
      (unsigned long long)c->overslept, (unsigned long long)c->unserved,
      (unsigned long long)c->leaked);
}

static void synthetic_write(const synthetic *s, const figures *f) {
  const settings *wanted = &s->settings;
  if (wanted->csv_path != NULL) {
    figures_append(f, wanted->csv_path);
  }
  if (wanted->hgrm_path != NULL) {
    char about[96];
    snprintf(about, sizeof about, "program=%s operation=request pattern=%s mode=%s", PROGRAM,
             wanted->pattern.name, wanted->has_epochs ? "tslab" : "malloc");
    hgrm_write(wanted->hgrm_path, about, &s->total.latencies, 1);
  }
}

// What leaked can be looked at meanwhile.
static void synthetic_hold(const synthetic *s) {
  fflush(stdout);
  sleep(s->settings.hold_s);
}

int main(int argc, char **argv) {
  settings wanted = settings_take(argc, argv);
  synthetic *s = synthetic_open(&wanted);
  synthetic_run(s);
  survivors_check(s);
  figures f = synthetic_figures(s);
  synthetic_report(s, &f);
  synthetic_write(s, &f);
  synthetic_hold(s);
}
