// bench_random_mixed's operation over working sets of 256 to 4,194,304 slots, each four times the
// one before. A pass that is not counted comes first, long enough to fill the slots half.
#include "common/args.h"
#include "common/clock.h"
#include "common/report.h"
#include "common/toggle.h"
#include "common/usage.h"

#include <stdio.h>

#define SLOTS_LEAST 256u
#define SLOTS_MOST (1u << 22)
#define STEPS_MAX 8u
#define WARM_TOGGLES 4u  // of each slot, about

typedef struct step {
  uint32_t slots;
  double rate;
  uint64_t faults;
} step;

static void slots_clear(char **slots, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    free(slots[i]);
    slots[i] = NULL;
  }
}

static step step_run(char **slots, uint32_t count, uint64_t operations) {
  uint32_t state = 42;
  uint64_t warm = (uint64_t)count * WARM_TOGGLES;
  slots_toggle(slots, count, operations > warm ? operations : warm, &state);
  usage before = usage_now(RUSAGE_SELF);
  uint64_t start = clock_ns();
  slots_toggle(slots, count, operations, &state);
  uint64_t ns = clock_ns() - start;
  usage met = usage_since(RUSAGE_SELF, &before);
  slots_clear(slots, count);
  return (step){count, report_million_per_s(operations, ns), met.faults};
}

static void steps_report(const step *steps, unsigned count, uint64_t operations) {
  report_open("ws_sweep");
  report_count("operations", operations);
  for (unsigned i = 0; i < count; i++) {
    char key[32];
    snprintf(key, sizeof key, "rate_%u", steps[i].slots);
    report_real(key, steps[i].rate);
    snprintf(key, sizeof key, "faults_%u", steps[i].slots);
    report_count(key, steps[i].faults);
  }
  double degradation = steps[0].rate / steps[count - 1].rate;
  report_real("degradation", degradation);
  report_text("unit", "Mops/s");
  report_close("random mixed: %.1f M ops/s at %u slots, %.1f at %u: degradation %.2f",
               steps[0].rate, steps[0].slots, steps[count - 1].rate, steps[count - 1].slots,
               degradation);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "ws_sweep [OPS [MOST_SLOTS]]");
  uint64_t operations = args_number(&a, 0, 10000000);
  uint32_t most = args_number32(&a, 1, SLOTS_MOST);
  args_end(&a, 2);
  if (most < SLOTS_LEAST || most > SLOTS_MOST) {
    args_refuse(&a, "not from 256 to 4194304", a.values[1]);
  }

  char **slots = memory_map(most * sizeof *slots);
  step steps[STEPS_MAX];
  unsigned count = 0;
  for (uint32_t slot_count = SLOTS_LEAST; slot_count <= most; slot_count *= 4) {
    steps[count++] = step_run(slots, slot_count, operations);
  }
  steps_report(steps, count, operations);
}
