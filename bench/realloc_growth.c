// Buffers that grow in turns by realloc, to twice their size, to one and a half, or by steps of the
// same number of bytes: the time and the page faults inside realloc, the time of a whole round, in
// which the buffers are written and freed, too (pages that moves took are made again), and the
// most that is resident over what the full buffers hold. Whether a move copied cannot be seen from
// outside, only that the address changed. Each way of growing has a process of its own.
#include "common/args.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/report.h"
#include "common/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_MAX 4096u
#define FIRST_BYTES 64u
#define STEP_BYTES 8192u
#define MARK 0x5A

typedef size_t (*grower)(size_t bytes);

typedef struct growth {
  const char *name;
  grower grow;
  unsigned buffers;
  size_t most_bytes;
  uint64_t rounds;
  uint64_t before;  // resident bytes, before the first buffer
  uint64_t ns;
  uint64_t round_ns;
  uint64_t faults;
  uint64_t calls;
  uint64_t moves;
  uint64_t peak_bytes;
  char *starts[BUFFERS_MAX];
} growth;

static size_t grow_double(size_t bytes) { return 2 * bytes; }

static size_t grow_half(size_t bytes) { return bytes + bytes / 2; }

static size_t grow_step(size_t bytes) { return bytes + STEP_BYTES; }

static const struct {
  const char *name;
  grower grow;
} ways[] = {{"double", grow_double}, {"half", grow_half}, {"step", grow_step}};
#define WAYS (sizeof ways / sizeof ways[0])

static void growth_resize(growth *g, size_t bytes) {
  usage before = usage_now(RUSAGE_SELF);
  uint64_t start = clock_ns();
  for (unsigned i = 0; i < g->buffers; i++) {
    char *old = g->starts[i];
    uintptr_t was = (uintptr_t)old;
    g->starts[i] = realloc(old, bytes);
    g->moves += was != 0 && (uintptr_t)g->starts[i] != was;
  }
  g->ns += clock_ns() - start;
  g->faults += usage_since(RUSAGE_SELF, &before).faults;
  g->calls += g->buffers;
}

static void growth_write(const growth *g, size_t from, size_t to) {
  for (unsigned i = 0; i < g->buffers; i++) {
    memory_demand(g->starts[i]);
    if (from != 0 && (g->starts[i][0] != MARK || g->starts[i][from - 1] != MARK)) {
      fputs("realloc lost what the buffer held\n", stderr);
      exit(1);
    }
    memset(g->starts[i] + from, MARK, to - from);
  }
}

static void growth_round(growth *g) {
  size_t from = 0;
  for (size_t bytes = FIRST_BYTES; from < g->most_bytes; bytes = g->grow(bytes)) {
    size_t to = bytes < g->most_bytes ? bytes : g->most_bytes;
    growth_resize(g, to);
    growth_write(g, from, to);
    from = to;
  }
  for (unsigned i = 0; i < g->buffers; i++) {
    free(g->starts[i]);
    g->starts[i] = NULL;
  }
}

static void growth_run(void *context) {
  growth *g = context;
  g->before = memory_resident_bytes();
  uint64_t start = clock_ns();
  for (uint64_t round = 0; round < g->rounds; round++) {
    growth_round(g);
  }
  g->round_ns = clock_ns() - start;
}

static double growth_overhead_pct(const growth *g) {
  return ((double)g->peak_bytes / (double)(g->buffers * g->most_bytes) - 1) * 100;
}

static void growth_report(const growth *g) {
  char key[32];
  snprintf(key, sizeof key, "%s_ms", g->name);
  report_real(key, (double)g->ns / 1e6 / (double)g->rounds);
  snprintf(key, sizeof key, "%s_round_ms", g->name);
  report_real(key, (double)g->round_ns / 1e6 / (double)g->rounds);
  snprintf(key, sizeof key, "%s_faults", g->name);
  report_count(key, g->faults);
  snprintf(key, sizeof key, "%s_calls", g->name);
  report_count(key, g->calls);
  snprintf(key, sizeof key, "%s_moves", g->name);
  report_count(key, g->moves);
  snprintf(key, sizeof key, "%s_peak_bytes", g->name);
  report_count(key, g->peak_bytes);
  snprintf(key, sizeof key, "%s_overhead_pct", g->name);
  report_real(key, growth_overhead_pct(g));
}

static void growth_print(const growth *g) {
  printf(
      "%8s: %.2f ms and %.0f faults a round in realloc, %.2f ms in all, %.0f %% of calls move, "
      "peak %.1f %% over the buffers\n",
      g->name, (double)g->ns / 1e6 / (double)g->rounds, (double)g->faults / (double)g->rounds,
      (double)g->round_ns / 1e6 / (double)g->rounds, (double)g->moves / (double)g->calls * 100,
      growth_overhead_pct(g));
}

static void growths_report(const growth *growths, unsigned count) {
  report_open("realloc_growth");
  report_count("buffers", growths[0].buffers);
  report_count("bytes", growths[0].most_bytes);
  report_count("rounds", growths[0].rounds);
  for (unsigned i = 0; i < count; i++) {
    growth_report(&growths[i]);
  }
  report_close("%u buffers grow to %zu bytes, %llu times", growths[0].buffers,
               growths[0].most_bytes, (unsigned long long)growths[0].rounds);
  for (unsigned i = 0; i < count; i++) {
    growth_print(&growths[i]);
  }
}

static void growth_measure(growth *g) {
  uint64_t peak = child_run(growth_run, g);
  g->peak_bytes = peak < g->before ? 0 : peak - g->before;
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "realloc_growth [BUFFERS [BYTES [ROUNDS]]]");
  uint32_t buffers = args_number32(&a, 0, 8);
  size_t most_bytes = args_number(&a, 1, 4u << 20);
  uint64_t rounds = args_number(&a, 2, 5);
  args_end(&a, 3);
  if (buffers > BUFFERS_MAX) {
    args_refuse(&a, "too many buffers", a.values[0]);
  }

  growth *growths = memory_share(WAYS * sizeof *growths);
  for (unsigned i = 0; i < WAYS; i++) {
    growth *g = &growths[i];
    g->name = ways[i].name;
    g->grow = ways[i].grow;
    g->buffers = buffers;
    g->most_bytes = most_bytes;
    g->rounds = rounds;
    growth_measure(g);
  }
  growths_report(growths, WAYS);
}
