// The founding smoke tests: one thread with 20,000 blocks live at once, 8 threads with 500,000
// allocations each, and a glance at latency. Every block is filled with bytes of its own and looked
// at before it is freed; one byte that changed, or a block that is missing, fails the program.
#include "common/args.h"
#include "common/clock.h"
#include "common/fill.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SINGLE_BLOCKS 20000u
#define THREADS 8u
#define LIVE_BLOCKS 1000u  // of each thread
#define LATENCY_BLOCKS 100000u
#define LATENCY_BYTES 128u

typedef struct marked {
  unsigned char *start;
  size_t bytes;
  unsigned char mark;
} marked;

typedef struct crowd {
  uint64_t allocations;      // of each thread
  _Atomic uint64_t damaged;  // blocks, those of the single thread included
} crowd;

static marked marked_make(uint32_t *state) {
  marked m = {.bytes = 1 + random_below(state, 1024)};
  m.mark = (unsigned char)random_next(state);
  m.start = malloc(m.bytes);
  memory_demand(m.start);
  memset(m.start, m.mark, m.bytes);
  return m;
}

// Whether the block was as it had been left.
static bool marked_end(marked *m) {
  bool intact = m->start == NULL || (uintptr_t)m->start % 16 == 0 || m->bytes < 16;
  for (size_t i = 0; m->start != NULL && i < m->bytes; i++) {
    intact = intact && m->start[i] == m->mark;
  }
  free(m->start);
  m->start = NULL;
  return intact;
}

static uint64_t single_run(void) {
  marked *blocks = memory_map(SINGLE_BLOCKS * sizeof *blocks);
  uint32_t state = 42;
  uint64_t damaged = 0;
  for (uint32_t i = 0; i < SINGLE_BLOCKS; i++) {
    blocks[i] = marked_make(&state);
  }
  for (uint32_t i = 0; i < SINGLE_BLOCKS; i++) {
    damaged += !marked_end(&blocks[i]);
  }
  return damaged;
}

static void crowd_thread(void *context, unsigned index) {
  crowd *c = context;
  uint32_t state = random_seed(42, index);
  marked *blocks = memory_map(LIVE_BLOCKS * sizeof *blocks);
  uint64_t damaged = 0;
  for (uint64_t i = 0; i < c->allocations; i++) {
    marked *m = &blocks[random_below(&state, LIVE_BLOCKS)];
    damaged += !marked_end(m);
    *m = marked_make(&state);
  }
  for (uint32_t i = 0; i < LIVE_BLOCKS; i++) {
    damaged += !marked_end(&blocks[i]);
  }
  atomic_fetch_add(&c->damaged, damaged);
}

static probe *latency_run(void) {
  probe *mallocs = memory_map(sizeof *mallocs);
  probe *frees = memory_map(sizeof *frees);
  char **blocks = memory_map(LATENCY_BLOCKS * sizeof *blocks);
  fill f = {blocks, LATENCY_BLOCKS, LATENCY_BYTES, mallocs, frees, NULL};
  fill_run_batches(&f);
  fill_run_singles(&f);
  return mallocs;
}

static void smoke_report(const crowd *c, uint64_t ns, const probe *mallocs) {
  double ns_per_tick = clock_ns_per_tick();
  report_open("smoke_tests");
  report_count("single", SINGLE_BLOCKS);
  report_count("threads", THREADS);
  report_count("allocations", c->allocations * THREADS);
  report_real("rate", report_million_per_s(c->allocations * THREADS, ns));
  report_text("unit", "Mallocations/s");
  report_real("floor_ns", (double)ticks_floor() * ns_per_tick);
  probe_report("malloc", mallocs, ns_per_tick);
  report_count("damaged", c->damaged);
  report_close("smoke tests %s: %llu blocks damaged; malloc p50 %.1f ns",
               c->damaged == 0 ? "passed" : "failed", (unsigned long long)c->damaged,
               probe_batch_p50_ns(mallocs, ns_per_tick));
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "smoke_tests [ALLOCATIONS_OF_A_THREAD]");
  crowd c = {.allocations = args_number(&a, 0, 500000)};
  args_end(&a, 1);

  c.damaged = single_run();
  uint64_t ns = threads_run(THREADS, crowd_thread, &c);
  smoke_report(&c, ns, latency_run());
  return c.damaged == 0 ? 0 : 1;
}
