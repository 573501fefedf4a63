// Pareto on both axes: few sizes are large, and four of five replacements meet one slot in five (in
// the manner of alloc-test).
#include "common/args.h"
#include "common/blocks.h"
#include "common/rate.h"
#include "common/sizes.h"
#include "common/threads.h"

#define SLOTS 20000u
#define HOT_SLOTS (SLOTS / 5)

typedef struct test {
  uint64_t replacements;
} test;

static uint32_t slot_choose(uint32_t *state) {
  return random_below(state, 5) == 0 ? random_below(state, SLOTS) : random_below(state, HOT_SLOTS);
}

static void test_thread(void *context, unsigned index) {
  const test *t = context;
  uint32_t state = random_seed(42, index);
  block *slots = memory_map(SLOTS * sizeof(block));
  for (uint64_t i = 0; i < t->replacements; i++) {
    block_replace(&slots[slot_choose(&state)], size_skewed(&state, 8, 10));
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_alloc_test [THREADS [OPS]]");
  unsigned threads = args_threads(&a, 0, 2);
  uint64_t operations = args_number(&a, 1, 60000000);
  args_end(&a, 2);
  test t = {.replacements = operations / threads / 2 + 1};

  uint64_t ns = threads_run(threads, test_thread, &t);
  rate_report(
      &(rate){"shape_alloc_test", "Mops/s", threads, 2 * t.replacements * threads, 1e6, ns});
}
