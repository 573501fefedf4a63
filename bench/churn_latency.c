// First in, first out: the oldest of LIVE blocks is freed and a new one allocated, each call timed
// on its own. Blocks are written outside the timed part, so that first touches of fresh pages are
// the kernel's time, not malloc's. Frees on another page than the one before are told apart as
// well: there the processor has read nothing ahead.
#include "common/args.h"
#include "common/clock.h"
#include "common/latency.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

typedef struct churn {
  char **blocks;
  uint32_t live;
  size_t bytes;  // 0: sizes are mixed
  uint32_t state;
  histogram mallocs;
  histogram frees;
  uintptr_t page;         // of the block that was freed last
  histogram other_pages;  // frees on another page than the one before
} churn;

static size_t churn_next_bytes(churn *c) {
  return c->bytes != 0 ? c->bytes : 16 + (random_next(&c->state) & 1023);
}

static void churn_replace(churn *c, char **slot) {
  size_t bytes = churn_next_bytes(c);
  char *old = *slot;
  uintptr_t page = (uintptr_t)old / PAGE_BYTES;
  uint64_t start = ticks_begin();
  free(old);
  uint64_t taken = ticks_end() - start;
  histogram_add(&c->frees, taken);
  if (page != c->page) histogram_add(&c->other_pages, taken);
  c->page = page;
  start = ticks_begin();
  char *block = malloc(bytes);
  histogram_add(&c->mallocs, ticks_end() - start);
  memory_demand(block);
  memory_touch(block, bytes);
  *slot = block;
}

static void churn_run(churn *c, uint64_t replacements) {
  uint32_t oldest = 0;
  for (uint64_t i = 0; i < replacements; i++) {
    churn_replace(c, &c->blocks[oldest]);
    oldest = oldest + 1 == c->live ? 0 : oldest + 1;
  }
}

static void churn_fill(churn *c) {
  for (uint32_t i = 0; i < c->live; i++) {
    size_t bytes = churn_next_bytes(c);
    c->blocks[i] = malloc(bytes);
    memory_demand(c->blocks[i]);
    memory_touch(c->blocks[i], bytes);
  }
}

static void churn_report(const churn *c, uint64_t operations) {
  double ns_per_tick = clock_ns_per_tick();
  double floor_ns = (double)ticks_floor() * ns_per_tick;
  report_open("churn_latency");
  report_count("operations", operations);
  report_count("live", c->live);
  report_count("bytes", c->bytes);
  report_real("floor_ns", floor_ns);
  latency_report("malloc", &c->mallocs, ns_per_tick);
  latency_report("free", &c->frees, ns_per_tick);
  latency_report_one("free_other_page", "p50", latency_ns(&c->other_pages, 0.5, ns_per_tick));
  report_real("free_other_page_pct", 100 * (double)c->other_pages.count / (double)c->frees.count);
  report_close(
      "churn of %u live: malloc p50 %.0f, p99.9 %.0f ns, free p50 %.0f, p99.9 %.0f ns, "
      "timer floor %.0f ns (included)",
      c->live, latency_ns(&c->mallocs, 0.5, ns_per_tick),
      latency_ns(&c->mallocs, 0.999, ns_per_tick), latency_ns(&c->frees, 0.5, ns_per_tick),
      latency_ns(&c->frees, 0.999, ns_per_tick), floor_ns);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "churn_latency [--mixed] [OPS [LIVE [BYTES]]]");
  bool mixed = args_take_flag(&a, "--mixed");
  uint64_t operations = args_number(&a, 0, 20000000);
  churn *c = memory_map(sizeof *c);
  c->live = args_number32(&a, 1, 100000);
  c->bytes = mixed ? 0 : args_number(&a, 2, 128);
  c->state = 42;
  args_end(&a, 3);
  c->blocks = memory_map(c->live * sizeof *c->blocks);

  churn_fill(c);
  churn_run(c, c->live);
  memset(&c->mallocs, 0, sizeof c->mallocs);
  memset(&c->frees, 0, sizeof c->frees);
  churn_run(c, (operations + 1) / 2);
  churn_report(c, operations);
}
