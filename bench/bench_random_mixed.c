// One thread, random slots: the block there is freed, or one of 16 to 1,039 bytes is allocated.
// A first pass of the same length warms up and is not counted. Where the allocator tells how often
// its fast path is left, a third pass, which is not timed, is asked for it.
#include "common/args.h"
#include "common/clock.h"
#include "common/counters.h"
#include "common/memory.h"
#include "common/report.h"
#include "common/toggle.h"

static uint64_t pass_ns(char **slots, uint32_t count, uint64_t operations, uint32_t *state) {
  uint64_t start = clock_ns();
  slots_toggle(slots, count, operations, state);
  return clock_ns() - start;
}

static void slow_paths_report(char **slots, uint32_t count, uint64_t operations, uint32_t *state) {
  counters_demand();
  counters c = counters_open();
  if (counters_are_known(&c)) {
    uint64_t before = counters_slow_paths(&c);
    slots_toggle(slots, count, operations, state);
    uint64_t left = counters_slow_paths(&c) - before;
    report_real("slow_path_pct", (double)left / (double)operations * 100);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "bench_random_mixed [OPS [SLOTS [SEED]]]");
  uint64_t operations = args_number(&a, 0, 10000000);
  uint32_t count = args_number32(&a, 1, 8192);
  uint32_t state = args_number32(&a, 2, 42);
  args_end(&a, 3);

  char **slots = memory_map(count * sizeof *slots);
  pass_ns(slots, count, operations, &state);
  uint64_t ns = pass_ns(slots, count, operations, &state);

  double rate = report_million_per_s(operations, ns);
  report_open("bench_random_mixed");
  report_count("operations", operations);
  report_count("slots", count);
  report_real("rate", rate);
  report_text("unit", "Mops/s");
  slow_paths_report(slots, count, operations, &state);
  report_close("random mixed, %u slots: %.2f M ops/s", count, rate);
}
