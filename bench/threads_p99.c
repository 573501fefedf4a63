// More threads than processors; every malloc timed on its own, histograms of all threads merged.
#include "common/args.h"
#include "common/clock.h"
#include "common/latency.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

#include <stdlib.h>

#define SLOTS 1000u

typedef struct crowd {
  uint64_t operations;
  histogram *mallocs;  // one a thread
  char **slots;        // SLOTS a thread
} crowd;

static void crowd_thread(void *context, unsigned index) {
  const crowd *c = context;
  uint32_t state = random_seed(42, index);
  char **slots = &c->slots[index * SLOTS];
  for (uint64_t i = 0; i < c->operations; i++) {
    char **slot = &slots[random_below(&state, SLOTS)];
    size_t bytes = 16 + (random_next(&state) & 1023);
    free(*slot);
    uint64_t start = ticks_begin();
    *slot = malloc(bytes);
    histogram_add(&c->mallocs[index], ticks_end() - start);
    memory_demand(*slot);
    memory_touch(*slot, bytes);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "threads_p99 [THREADS [OPS]]");
  unsigned threads = args_threads(&a, 0, 16);
  crowd c = {.operations = args_number(&a, 1, 16000000) / threads + 1};
  args_end(&a, 2);
  c.mallocs = memory_map(threads * sizeof(histogram));
  c.slots = memory_map(threads * SLOTS * sizeof(char *));

  threads_run(threads, crowd_thread, &c);
  for (unsigned i = 1; i < threads; i++) {
    histogram_merge(&c.mallocs[0], &c.mallocs[i]);
  }

  double ns_per_tick = clock_ns_per_tick();
  report_open("threads_p99");
  report_count("threads", threads);
  report_real("floor_ns", (double)ticks_floor() * ns_per_tick);
  latency_report("malloc", &c.mallocs[0], ns_per_tick);
  report_close("%u threads: malloc p99 %.0f ns", threads,
               latency_ns(&c.mallocs[0], 0.99, ns_per_tick));
}
