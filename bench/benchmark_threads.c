// Threads that share nothing fill themselves with blocks of 128 bytes and free them in order, ten
// rounds of it: 1, 2, 4, 8 and 16 threads, or as many as the command line says. What the rounds and
// runs before left behind is used again, where the allocator kept it. Throughput counts allocations
// and frees from the first start to the last finish of a run timed in batches, which also tells the
// median; tails are of a run that times each call, histograms of all threads merged. Where threads
// outnumber processors, the time that a thread waits for one is part of its latency.
#include "common/allocator.h"
#include "common/clock.h"
#include "common/csv.h"
#include "common/fill.h"
#include "common/hgrm.h"
#include "common/memory.h"
#include "common/output.h"
#include "common/report.h"
#include "common/threads.h"
#include "common/usage.h"

#include <stdlib.h>

#define BYTES 128u
#define COUNTS_MAX 5u

typedef struct lane {
  probe mallocs;
  probe frees;
} lane;

typedef struct team {
  unsigned threads;
  uint64_t blocks;  // each thread's
  uint64_t rounds;
  void (*run)(fill *f);
  lane *lanes;  // one a thread; in the end the first holds all
  char **slots;
  double rate;
  usage met;
} team;

static void team_thread(void *context, unsigned index) {
  const team *t = context;
  lane *l = &t->lanes[index];
  fill f = {&t->slots[index * t->blocks], t->blocks, BYTES, &l->mallocs, &l->frees, NULL};
  for (uint64_t round = 0; round < t->rounds; round++) {
    t->run(&f);
  }
  free(f.pin);
}

static void team_measure(team *t, char **slots) {
  t->slots = slots;
  t->lanes = memory_map(t->threads * sizeof *t->lanes);
  t->run = fill_run_batches;
  uint64_t ns = threads_run(t->threads, team_thread, t);
  t->rate = (double)(2 * t->threads * t->rounds * t->blocks) * 1e9 / (double)ns;

  t->run = fill_run_singles;
  usage before = usage_now(RUSAGE_SELF);
  threads_run(t->threads, team_thread, t);
  t->met = usage_since(RUSAGE_SELF, &before);
  for (unsigned i = 1; i < t->threads; i++) {
    probe_merge(&t->lanes[0].mallocs, &t->lanes[i].mallocs);
    probe_merge(&t->lanes[0].frees, &t->lanes[i].frees);
  }
}

static void teams_write(const team *teams, unsigned count, const char *path, double ns_per_tick) {
  FILE *file = csv_open(path, "allocator,threads,throughput_ops_sec,avg_ns,p50_ns,p95_ns,p99_ns");
  for (unsigned i = 0; i < count; i++) {
    const probe *p = &teams[i].lanes[0].mallocs;
    fprintf(file, "%s,%u,%.0f,%.2f,%.2f,%.2f,%.2f\n", allocator_file(), teams[i].threads,
            teams[i].rate, probe_mean_ns(p, ns_per_tick), probe_batch_p50_ns(p, ns_per_tick),
            latency_ns(&p->singles, 0.95, ns_per_tick), latency_ns(&p->singles, 0.99, ns_per_tick));
  }
  output_close(file, path);
}

static void team_hgrm(const team *t, const char *path, double ns_per_tick) {
  char about[96];
  snprintf(about, sizeof about, "program=benchmark_threads operation=malloc threads=%u",
           t->threads);
  hgrm_append(path, about, &t->lanes[0].mallocs.singles, ns_per_tick);
  snprintf(about, sizeof about, "program=benchmark_threads operation=free threads=%u", t->threads);
  hgrm_append(path, about, &t->lanes[0].frees.singles, ns_per_tick);
}

static void teams_hgrm(const team *teams, unsigned count, const char *path, double ns_per_tick) {
  output_close(output_open(path, "w"), path);
  for (unsigned i = 0; i < count; i++) {
    team_hgrm(&teams[i], path, ns_per_tick);
  }
}

static void team_report(const team *t, double ns_per_tick) {
  char key[32];
  snprintf(key, sizeof key, "t%u_rate", t->threads);
  report_real(key, t->rate / 1e6);
  snprintf(key, sizeof key, "t%u_malloc", t->threads);
  probe_report(key, &t->lanes[0].mallocs, ns_per_tick);
  snprintf(key, sizeof key, "t%u_free", t->threads);
  probe_report(key, &t->lanes[0].frees, ns_per_tick);
  snprintf(key, sizeof key, "t%u_faults", t->threads);
  report_count(key, t->met.faults);
  snprintf(key, sizeof key, "t%u_switches", t->threads);
  report_count(key, t->met.switches);
}

static void team_print(const team *t, double ns_per_tick) {
  const probe *p = &t->lanes[0].mallocs;
  printf("%2u threads: %.1f M ops/s, malloc p50 %.1f, p95 %.0f, p99 %.0f ns, %llu switches\n",
         t->threads, t->rate / 1e6, probe_batch_p50_ns(p, ns_per_tick),
         latency_ns(&p->singles, 0.95, ns_per_tick), latency_ns(&p->singles, 0.99, ns_per_tick),
         (unsigned long long)t->met.switches);
}

static void teams_report(const team *teams, unsigned count, double ns_per_tick) {
  double floor_ns = (double)ticks_floor() * ns_per_tick;
  report_open("benchmark_threads");
  report_count("bytes", BYTES);
  report_count("blocks", teams[0].blocks);
  report_count("rounds", teams[0].rounds);
  report_real("floor_ns", floor_ns);
  for (unsigned i = 0; i < count; i++) {
    team_report(&teams[i], ns_per_tick);
  }
  report_text("unit", "Mops/s");
  report_close("timer floor %.0f ns, in the percentiles from p95 on, not in p50", floor_ns);
  for (unsigned i = 0; i < count; i++) {
    team_print(&teams[i], ns_per_tick);
  }
}

// Each team has twice the threads of the one before.
static void teams_measure(team *teams, unsigned count) {
  char **slots = memory_map(teams[count - 1].threads * teams[0].blocks * sizeof *slots);
  for (unsigned i = 0; i < count; i++) {
    team_measure(&teams[i], slots);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv,
                     "benchmark_threads [--csv FILE] [--hgrm FILE] [--blocks N] [--rounds N] [N]");
  const char *csv_path = output_take(&a, "--csv");
  const char *hgrm_path = output_take(&a, "--hgrm");
  uint64_t blocks = args_take_number(&a, "--blocks", 100000);
  uint64_t rounds = args_take_number(&a, "--rounds", 10);
  unsigned wanted = args_threads(&a, 0, 1);
  unsigned count = a.count == 0 ? COUNTS_MAX : 1;
  args_end(&a, 1);
  if (blocks < PROBE_BATCH) {
    args_refuse(&a, "--blocks wants at least one batch", "64");
  }

  team teams[COUNTS_MAX];
  for (unsigned i = 0; i < count; i++) {
    teams[i] = (team){.threads = wanted << i, .blocks = blocks, .rounds = rounds};
  }
  teams_measure(teams, count);

  double ns_per_tick = clock_ns_per_tick();
  if (csv_path != NULL) {
    teams_write(teams, count, csv_path, ns_per_tick);
  }
  if (hgrm_path != NULL) {
    teams_hgrm(teams, count, hgrm_path, ns_per_tick);
  }
  teams_report(teams, count, ns_per_tick);
}
