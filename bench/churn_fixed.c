// Blocks of 128 bytes, first in, first out, a fixed number of them live: 1,000 times over, each
// allocation timed on its own. The median is of a tenth as many cycles that free 64 blocks and then
// time 64 allocations at once. Blocks are written outside the timed part.
#include "common/allocator.h"
#include "common/clock.h"
#include "common/hgrm.h"
#include "common/memory.h"
#include "common/output.h"
#include "common/probe.h"
#include "common/report.h"
#include "common/usage.h"

#include <stdlib.h>

#define BYTES 128u

typedef struct churn {
  char **blocks;
  uint64_t live;
  uint64_t cycles;
  probe mallocs;
  usage met;  // while calls were timed on their own
} churn;

typedef struct figure {
  const char *key;
  double value;
  bool is_count;
} figure;

static void cycle_singles(churn *c, histogram *ticks) {
  for (uint64_t i = 0; i < c->live; i++) {
    free(c->blocks[i]);
    uint64_t start = ticks_begin();
    char *block = malloc(BYTES);
    histogram_add(ticks, ticks_end() - start);
    memory_demand(block);
    memory_touch(block, BYTES);
    c->blocks[i] = block;
  }
}

static void batch_replace(char **blocks, histogram *ticks) {
  for (unsigned i = 0; i < PROBE_BATCH; i++) {
    free(blocks[i]);
  }
  uint64_t start = ticks_begin();
  for (unsigned i = 0; i < PROBE_BATCH; i++) {
    blocks[i] = malloc(BYTES);
  }
  histogram_add(ticks, ticks_end() - start);
  for (unsigned i = 0; i < PROBE_BATCH; i++) {
    memory_demand(blocks[i]);
    memory_touch(blocks[i], BYTES);
  }
}

static void cycle_batches(churn *c) {
  for (uint64_t i = 0; i + PROBE_BATCH <= c->live; i += PROBE_BATCH) {
    batch_replace(&c->blocks[i], &c->mallocs.batches);
  }
}

static void churn_run(churn *c) {
  histogram *unused = memory_map(sizeof *unused);
  cycle_singles(c, unused);
  cycle_singles(c, unused);
  usage before = usage_now(RUSAGE_SELF);
  for (uint64_t i = 0; i < c->cycles; i++) {
    cycle_singles(c, &c->mallocs.singles);
  }
  c->met = usage_since(RUSAGE_SELF, &before);
  for (uint64_t i = 0; i < c->cycles; i += 10) {
    cycle_batches(c);
  }
}

static void figures_print_json(const figure *figures, unsigned count) {
  char version[64];
  allocator_version(version, sizeof version);
  printf("{\"program\": \"churn_fixed\", \"allocator\": \"%s\", \"version\": \"%s\"",
         allocator_file(), version);
  for (unsigned i = 0; i < count; i++) {
    printf(", \"%s\": %.*f", figures[i].key, figures[i].is_count ? 0 : 4, figures[i].value);
  }
  printf("}\n");
}

static void figures_report(const figure *figures, unsigned count, const churn *c,
                           double ns_per_tick) {
  report_open("churn_fixed");
  for (unsigned i = 0; i < count; i++) {
    if (figures[i].is_count) {
      report_count(figures[i].key, (uint64_t)figures[i].value);
    } else {
      report_real(figures[i].key, figures[i].value);
    }
  }
  report_close("%llu live: malloc p50 %.1f, p99 %.0f, p99.9 %.0f, p99.99 %.0f, p99.999 %.0f ns",
               (unsigned long long)c->live, probe_batch_p50_ns(&c->mallocs, ns_per_tick),
               latency_ns(&c->mallocs.singles, 0.99, ns_per_tick),
               latency_ns(&c->mallocs.singles, 0.999, ns_per_tick),
               latency_ns(&c->mallocs.singles, 0.9999, ns_per_tick),
               latency_ns(&c->mallocs.singles, 0.99999, ns_per_tick));
}

static void churn_report(const churn *c, bool is_json, double ns_per_tick) {
  const histogram *singles = &c->mallocs.singles;
  double p50_ns = probe_batch_p50_ns(&c->mallocs, ns_per_tick);
  double p99999_ns = latency_ns(singles, 0.99999, ns_per_tick);
  const figure figures[] = {
      {"live", (double)c->live, true},
      {"cycles", (double)c->cycles, true},
      {"bytes", BYTES, true},
      {"allocations", (double)singles->count, true},
      {"floor_ns", (double)ticks_floor() * ns_per_tick, false},
      {"p50_ns", p50_ns, false},
      {"mean_ns", probe_mean_ns(&c->mallocs, ns_per_tick), false},
      {"single_p50_ns", latency_ns(singles, 0.5, ns_per_tick), false},
      {"p90_ns", latency_ns(singles, 0.9, ns_per_tick), false},
      {"p95_ns", latency_ns(singles, 0.95, ns_per_tick), false},
      {"p99_ns", latency_ns(singles, 0.99, ns_per_tick), false},
      {"p999_ns", latency_ns(singles, 0.999, ns_per_tick), false},
      {"p9999_ns", latency_ns(singles, 0.9999, ns_per_tick), false},
      {"p99999_ns", p99999_ns, false},
      {"max_ns", (double)singles->max * ns_per_tick, false},
      {"p99999_over_p50", p99999_ns / p50_ns, false},
      {"faults", (double)c->met.faults, true},
      {"switches", (double)c->met.switches, true},
  };
  unsigned count = sizeof figures / sizeof figures[0];
  if (is_json) {
    figures_print_json(figures, count);
  } else {
    figures_report(figures, count, c, ns_per_tick);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "churn_fixed [--json] [--hgrm FILE] [--live N] [--cycles N]");
  bool is_json = args_take_flag(&a, "--json");
  const char *hgrm_path = output_take(&a, "--hgrm");
  churn *c = memory_map(sizeof *c);
  c->live = args_take_number(&a, "--live", 100000);
  c->cycles = args_take_number(&a, "--cycles", 1000);
  args_end(&a, 0);
  if (c->live < PROBE_BATCH) {
    args_refuse(&a, "--live wants at least one batch", "64");
  }
  c->blocks = memory_map(c->live * sizeof *c->blocks);

  churn_run(c);

  double ns_per_tick = clock_ns_per_tick();
  if (hgrm_path != NULL) {
    hgrm_write(hgrm_path, "program=churn_fixed operation=malloc", &c->mallocs.singles, ns_per_tick);
  }
  churn_report(c, is_json, ns_per_tick);
}
