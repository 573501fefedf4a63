// The founding figures of equal blocks, each part in a process of its own: resident memory over the
// payload, latency of allocations and then of frees in order, the events that the slowest of them
// met, and what rounding to size classes wastes. Blocks meet fresh memory, as in the founding
// program, and then once more the memory that they just left (`warm`). Medians are of batches, but
// for malloc in fresh memory, where the table has the median of single calls, timer included. A
// block's size is what malloc_usable_size says: headers show in resident memory only.
#include "common/allocator.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/csv.h"
#include "common/fill.h"
#include "common/hgrm.h"
#include "common/memory.h"
#include "common/output.h"
#include "common/report.h"
#include "common/tail.h"
#include "common/usage.h"

#include <malloc.h>
#include <stdlib.h>

#define BYTES 128u

typedef void (*fill_runner)(fill *f);

typedef struct latencies {
  probe mallocs;
  probe frees;
  uint64_t faults;  // of all passes, first touches included
} latencies;

typedef struct accurate {
  const char *csv_path;
  const char *waste_path;
  const char *hgrm_path;
  uint64_t blocks;
  uint64_t operations;
  uint64_t resident_bytes;
  latencies fresh;
  latencies warm;
  tail tail;
} accurate;

static const size_t sizes[] = {48,  56,  64,  72,  80,  88,  96,  112, 128, 144, 160, 176, 192,
                               224, 256, 288, 320, 352, 384, 448, 512, 576, 640, 704, 768};
#define SIZES (sizeof sizes / sizeof sizes[0])

typedef struct waste {
  double efficiency_mean_pct;
  double efficiency_least_pct;
  size_t rounded[SIZES];
} waste;

static void rss_measure(void *context) {
  accurate *a = context;
  uint64_t before = memory_resident_bytes();
  for (uint64_t i = 0; i < a->blocks; i++) {
    char *block = malloc(BYTES);
    memory_demand(block);
    memory_touch(block, BYTES);
  }
  a->resident_bytes = memory_resident_bytes() - before;
}

// Shared pages fault in a child: the histograms are its own until it is done.
static void latencies_measure(latencies *into, fill *f, fill_runner run) {
  latencies *own = memory_map(sizeof *own);
  f->mallocs = &own->mallocs;
  f->frees = &own->frees;
  usage before = usage_now(RUSAGE_SELF);
  run(f);
  into->faults += usage_since(RUSAGE_SELF, &before).faults;
  probe_merge(&into->mallocs, &own->mallocs);
  probe_merge(&into->frees, &own->frees);
}

static void passes_measure(accurate *a, fill_runner run) {
  fill f = {.count = a->operations, .bytes = BYTES};
  f.blocks = memory_map(f.count * sizeof *f.blocks);
  latencies_measure(&a->fresh, &f, run);
  latencies_measure(&a->warm, &f, run);
}

static void singles_measure(void *context) { passes_measure(context, fill_run_singles); }

static void batches_measure(void *context) { passes_measure(context, fill_run_batches); }

static void tail_measure(void *context) {
  accurate *a = context;
  tail_run(&a->tail, a->operations, BYTES);
}

static waste waste_measure(void) {
  waste w = {.efficiency_least_pct = 100};
  for (unsigned i = 0; i < SIZES; i++) {
    void *block = malloc(sizes[i]);
    memory_demand(block);
    w.rounded[i] = malloc_usable_size(block);
    free(block);
    double pct = (double)sizes[i] / (double)w.rounded[i] * 100;
    w.efficiency_mean_pct += pct / SIZES;
    w.efficiency_least_pct = pct < w.efficiency_least_pct ? pct : w.efficiency_least_pct;
  }
  return w;
}

static void latency_row(FILE *file, const char *operation, const probe *p, double p50_ns,
                        double ns_per_tick) {
  double mean_ns = probe_mean_ns(p, ns_per_tick);
  fprintf(file, "%s,1,%u,%s,%.2f,%.2f,%.2f,%.2f,%.2f,%.0f\n", allocator_file(), BYTES, operation,
          mean_ns, p50_ns, latency_ns(&p->singles, 0.95, ns_per_tick),
          latency_ns(&p->singles, 0.99, ns_per_tick), latency_ns(&p->singles, 0.999, ns_per_tick),
          1e9 / mean_ns);
}

static void latency_write(const accurate *a, const char *path, double ns_per_tick) {
  FILE *file = csv_open(
      path, "allocator,threads,size_class,op,avg_ns,p50_ns,p95_ns,p99_ns,p999_ns,ops_per_sec");
  // A batch in fresh memory meets page faults that most single calls do not.
  latency_row(file, "malloc", &a->fresh.mallocs,
              latency_ns(&a->fresh.mallocs.singles, 0.5, ns_per_tick), ns_per_tick);
  latency_row(file, "free", &a->fresh.frees, probe_batch_p50_ns(&a->fresh.frees, ns_per_tick),
              ns_per_tick);
  latency_row(file, "malloc_warm", &a->warm.mallocs,
              probe_batch_p50_ns(&a->warm.mallocs, ns_per_tick), ns_per_tick);
  latency_row(file, "free_warm", &a->warm.frees, probe_batch_p50_ns(&a->warm.frees, ns_per_tick),
              ns_per_tick);
  output_close(file, path);
}

static void waste_write(const waste *w, const char *path) {
  FILE *file = csv_open(path, "allocator,size_class,requested,rounded,wasted,efficiency_pct");
  for (unsigned i = 0; i < SIZES; i++) {
    fprintf(file, "%s,%zu,%zu,%zu,%zu,%.2f\n", allocator_file(), w->rounded[i], sizes[i],
            w->rounded[i], w->rounded[i] - sizes[i],
            (double)sizes[i] / (double)w->rounded[i] * 100);
  }
  output_close(file, path);
}

static void hgrm_write_all(const accurate *a, const char *path, double ns_per_tick) {
  hgrm_write(path, "program=benchmark_accurate operation=malloc", &a->fresh.mallocs.singles,
             ns_per_tick);
  hgrm_append(path, "program=benchmark_accurate operation=free", &a->fresh.frees.singles,
              ns_per_tick);
  hgrm_append(path, "program=benchmark_accurate operation=malloc_warm", &a->warm.mallocs.singles,
              ns_per_tick);
  hgrm_append(path, "program=benchmark_accurate operation=free_warm", &a->warm.frees.singles,
              ns_per_tick);
}

static double share_pct(uint64_t part, uint64_t whole) {
  return (double)part / (double)whole * 100;
}

static double slow_path_pct(const accurate *a) {
  return share_pct(a->tail.slow_paths, 2 * a->operations);
}

// Slabs join and leave lists as bins are filled from them and blocks are put back: these are the
// moves that are counted.
static void counters_print(const accurate *a) {
  const tail *t = &a->tail;
  printf(
      "of those with neither, %llu opened a slab, %llu filled the empty bin, %llu did not leave "
      "the fast path\n",
      (unsigned long long)t->opened_slab, (unsigned long long)t->refilled,
      (unsigned long long)t->others);
  printf(
      "slow path hits %llu, %.2f %% of mallocs and frees; new slabs %llu; in place of list moves "
      "%llu bins filled and %llu blocks put back; current misses %llu, %.2f %% of mallocs\n",
      (unsigned long long)t->slow_paths, slow_path_pct(a), (unsigned long long)t->opened,
      (unsigned long long)t->refills, (unsigned long long)t->returned,
      (unsigned long long)t->refills, share_pct(t->refills, a->operations));
}

static void tail_print(const accurate *a) {
  const tail *t = &a->tail;
  uint64_t neither = t->opened_slab + t->refilled + t->others;
  printf(
      "malloc's slowest 0.1 %%: of %llu calls %llu met page faults, %llu switches, %llu neither\n",
      (unsigned long long)t->slow, (unsigned long long)t->faulted, (unsigned long long)t->switched,
      (unsigned long long)neither);
  if (t->is_told) {
    counters_print(a);
  } else {
    printf("slow path hits, new slabs, list moves, current misses: the allocator tells nothing\n");
  }
  printf("dominant cause of the tail: %s\n", tail_cause(t));
}

static double overhead_pct(const accurate *a) {
  return ((double)a->resident_bytes / (double)(a->blocks * BYTES) - 1) * 100;
}

static void memory_report(const accurate *a) {
  report_count("blocks", a->blocks);
  report_count("operations", a->operations);
  report_count("bytes", BYTES);
  report_count("resident_bytes", a->resident_bytes);
  report_real("overhead_pct", overhead_pct(a));
}

static void probes_report(const accurate *a, double ns_per_tick) {
  probe_report("malloc", &a->fresh.mallocs, ns_per_tick);
  probe_report("free", &a->fresh.frees, ns_per_tick);
  probe_report("warm_malloc", &a->warm.mallocs, ns_per_tick);
  probe_report("warm_free", &a->warm.frees, ns_per_tick);
  report_count("faults", a->fresh.faults);
  report_count("warm_faults", a->warm.faults);
}

static void tail_report(const tail *t) {
  report_count("malloc_faults", t->faults);
  report_count("slow", t->slow);
  report_count("slow_faulted", t->faulted);
  report_count("slow_switched", t->switched);
  report_count("slow_neither", t->opened_slab + t->refilled + t->others);
}

static void counters_report(const accurate *a) {
  const tail *t = &a->tail;
  if (t->is_told) {
    report_count("slow_opened_slab", t->opened_slab);
    report_count("slow_refilled", t->refilled);
    report_count("slabs_opened", t->opened);
    report_count("refills", t->refills);
    report_count("returned", t->returned);
    report_real("slow_path_pct", slow_path_pct(a));
  }
}

static void accurate_report(const accurate *a, const waste *w, double ns_per_tick) {
  double floor_ns = (double)ticks_floor() * ns_per_tick;
  report_open("benchmark_accurate");
  memory_report(a);
  report_real("floor_ns", floor_ns);
  probes_report(a, ns_per_tick);
  tail_report(&a->tail);
  counters_report(a);
  report_real("efficiency_mean_pct", w->efficiency_mean_pct);
  report_real("efficiency_least_pct", w->efficiency_least_pct);
  report_close(
      "%u B: %.2f %% resident over the payload; malloc p99.9 %.0f ns in fresh memory, timer floor "
      "%.0f ns included; in warm memory malloc p50 %.1f, free p50 %.1f ns; rounding wastes %.1f %%",
      BYTES, overhead_pct(a), latency_ns(&a->fresh.mallocs.singles, 0.999, ns_per_tick), floor_ns,
      probe_batch_p50_ns(&a->warm.mallocs, ns_per_tick),
      probe_batch_p50_ns(&a->warm.frees, ns_per_tick), 100 - w->efficiency_mean_pct);
  tail_print(a);
}

static void accurate_write(const accurate *a, const waste *w, double ns_per_tick) {
  if (a->csv_path != NULL) {
    latency_write(a, a->csv_path, ns_per_tick);
  }
  if (a->waste_path != NULL) {
    waste_write(w, a->waste_path);
  }
  if (a->hgrm_path != NULL) {
    hgrm_write_all(a, a->hgrm_path, ns_per_tick);
  }
}

static accurate *accurate_take(int argc, char **argv) {
  args arguments = args_open(argc, argv,
                             "benchmark_accurate [--csv FILE] [--fragmentation FILE] [--hgrm FILE] "
                             "[--blocks N] [--operations N]");
  accurate *a = memory_share(sizeof *a);
  a->csv_path = output_take(&arguments, "--csv");
  a->waste_path = output_take(&arguments, "--fragmentation");
  a->hgrm_path = output_take(&arguments, "--hgrm");
  a->blocks = args_take_number(&arguments, "--blocks", 2000000);
  a->operations = args_take_number(&arguments, "--operations", 1000000);
  args_end(&arguments, 0);
  if (a->operations < PROBE_BATCH) {
    args_refuse(&arguments, "--operations wants at least one batch", "64");
  }
  return a;
}

int main(int argc, char **argv) {
  accurate *a = accurate_take(argc, argv);
  child_run(rss_measure, a);
  child_run(singles_measure, a);
  child_run(batches_measure, a);
  child_run(tail_measure, a);
  waste w = waste_measure();
  double ns_per_tick = clock_ns_per_tick();
  accurate_write(a, &w, ns_per_tick);
  accurate_report(a, &w, ns_per_tick);
}
