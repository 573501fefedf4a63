// Allocation-bound threads that share nothing: throughput of N threads over that of one. Both are
// measured in turns, so that a slow moment of the machine meets both. The floor is the same loop
// with an array of blocks in place of an allocator: what the processors themselves gain.
#include "common/args.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

#include <stdlib.h>

#define TURNS 7u
#define SLOTS 1024u
#define BLOCK_BYTES 272u

typedef struct work {
  uint64_t operations;
  char **slots[THREADS_MAX];
  char *blocks[THREADS_MAX];  // the floor's
} work;

static void work_thread(void *context, unsigned index) {
  const work *w = context;
  uint32_t state = random_seed(42, index);
  char **slots = w->slots[index];
  for (uint64_t i = 0; i < w->operations; i++) {
    char **slot = &slots[random_below(&state, SLOTS)];
    free(*slot);
    *slot = malloc(16 + (random_next(&state) & 255));
    memory_demand(*slot);
    **slot = 1;
  }
}

static void floor_thread(void *context, unsigned index) {
  const work *w = context;
  uint32_t state = random_seed(42, index);
  char **slots = w->slots[index];
  for (uint64_t i = 0; i < w->operations; i++) {
    char **slot = &slots[random_below(&state, SLOTS)];
    *slot = w->blocks[index] + BLOCK_BYTES * (random_next(&state) & (SLOTS - 1));
    memory_demand(*slot);
    **slot = 1;
  }
}

static int compare_u64(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left;
  uint64_t b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

static double rate_of_median(uint64_t *ns, uint64_t operations) {
  qsort(ns, TURNS, sizeof *ns, compare_u64);
  return report_million_per_s(operations, ns[TURNS / 2]);
}

typedef struct gain {
  double one;
  double all;
} gain;

static gain gain_of(void (*body)(void *, unsigned), work *w, unsigned threads) {
  uint64_t one_ns[TURNS];
  uint64_t all_ns[TURNS];
  threads_run(threads, body, w);
  for (unsigned turn = 0; turn < TURNS; turn++) {
    one_ns[turn] = threads_run(1, body, w);
    all_ns[turn] = threads_run(threads, body, w);
  }
  return (gain){rate_of_median(one_ns, w->operations),
                rate_of_median(all_ns, w->operations * threads)};
}

static work work_open(uint64_t operations, unsigned threads) {
  work w = {.operations = operations};
  for (unsigned i = 0; i < threads; i++) {
    w.slots[i] = memory_map(SLOTS * sizeof(char *));
    w.blocks[i] = memory_map((size_t)SLOTS * BLOCK_BYTES);
  }
  return w;
}

static void work_clear(work *w, unsigned threads) {
  for (unsigned i = 0; i < threads; i++) {
    for (unsigned slot = 0; slot < SLOTS; slot++) {
      free(w->slots[i][slot]);
    }
  }
}

static void gains_report(gain ours, gain floor, unsigned threads) {
  report_open("scaling");
  report_count("threads", threads);
  report_real("one_mops", 2 * ours.one);
  report_real("all_mops", 2 * ours.all);
  report_real("ratio", ours.all / ours.one);
  report_real("floor_ratio", floor.all / floor.one);
  report_close("1 thread %.1f, %u threads %.1f M ops/s: %.2f x; without an allocator %.2f x",
               2 * ours.one, threads, 2 * ours.all, ours.all / ours.one, floor.all / floor.one);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "scaling [THREADS [OPS]]");
  unsigned threads = args_threads(&a, 0, 2);
  uint64_t operations = args_number(&a, 1, 5000000);
  args_end(&a, 2);

  work w = work_open(operations, threads);
  gain ours = gain_of(work_thread, &w, threads);
  work_clear(&w, threads);
  gain floor = gain_of(floor_thread, &w, threads);
  gains_report(ours, floor, threads);
}
