// Instructions of a warm malloc(64) and its free, counted by single steps: what the two functions
// execute, without the loop around them. --plain only runs the pairs, for `valgrind
// --tool=callgrind --toggle-collect=pair_loop`, which counts the same.
#include "common/args.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/report.h"
#include "common/stepper.h"

#include <stdlib.h>

#define TIMED_PAIRS 10000000u

typedef struct pairs {
  uint64_t count;
  size_t bytes;
} pairs;

// The linker defines both ends of a section whose name is an identifier.
extern const char __start_pair_code[];
extern const char __stop_pair_code[];

void pair_loop(uint64_t count, size_t bytes);
__attribute__((noinline, section("pair_code"))) void pair_loop(uint64_t count, size_t bytes) {
  for (uint64_t i = 0; i < count; i++) {
    void *block = malloc(bytes);
    __asm__ volatile("" : "+r"(block)::"memory");
    free(block);
  }
}

__attribute__((noinline)) static void warm_up(size_t bytes) {
  for (unsigned i = 0; i < 10000; i++) {
    char *block = malloc(bytes);
    memory_demand(block);
    free(block);
  }
}

static void pairs_run(void *context) {
  const pairs *p = context;
  warm_up(p->bytes);
  stepper_begin();
  pair_loop(p->count, p->bytes);
}

static double pair_ns(size_t bytes) {
  warm_up(bytes);
  uint64_t start = clock_ns();
  pair_loop(TIMED_PAIRS, bytes);
  return (double)(clock_ns() - start) / TIMED_PAIRS;
}

static void pairs_report(const pairs *p, const stepper_counts *counts, double ns) {
  double malloc_instructions = (double)counts->callee[0] / (double)p->count;
  double free_instructions = (double)counts->callee[1] / (double)p->count;

  report_open("pair_instructions");
  report_count("pairs", p->count);
  report_count("bytes", p->bytes);
  report_real("malloc_instructions", malloc_instructions);
  report_real("free_instructions", free_instructions);
  report_real("pair_instructions", malloc_instructions + free_instructions);
  report_real("pair_instructions_with_calls", malloc_instructions + free_instructions + 2);
  report_real("pair_ns", ns);
  report_close("warm malloc(%zu) and free: %.2f + %.2f instructions, %.2f ns", p->bytes,
               malloc_instructions, free_instructions, ns);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "pair_instructions [--plain] [PAIRS [BYTES]]");
  bool plain = args_take_flag(&a, "--plain");
  pairs p = {.count = args_number(&a, 0, 1000), .bytes = args_number(&a, 1, 64)};
  args_end(&a, 2);
  if (plain) {
    warm_up(p.bytes);
    pair_loop(p.count, p.bytes);
    return 0;
  }

  stepper_counts counts;
  stepper steps = {__start_pair_code, __stop_pair_code, pairs_run, &p};
  if (!stepper_run(&steps, &counts) || counts.calls != 2 * p.count) {
    args_refuse(&a, "cannot step through", "malloc and free");
  }
  pairs_report(&p, &counts, pair_ns(p.bytes));
}
