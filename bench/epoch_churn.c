// Steady churn: a tenth of all live objects, chosen at random, is replaced in each cycle by objects
// of the cycle's own epoch, which is closed at the cycle's end. Objects are of 128 bytes, or with
// --mixed of 16 to 1,039. Resident memory must not creep; it is the mean of the last ten cycles
// before each of both moments.
#include "common/args.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define FIRST_CYCLES 100u  // until an epoch has lost nearly all of its objects
#define SAMPLES 10u
#define BYTES 128u

typedef struct churn {
  char **objects;
  uint32_t live;
  bool is_mixed;
  uint32_t state;
  uint64_t before;  // resident bytes, before the first object
} churn;

static void churn_replace(churn *c, char **object) {
  size_t bytes = c->is_mixed ? 16 + (random_next(&c->state) & 1023) : BYTES;
  free(*object);
  *object = malloc(bytes);
  memory_demand(*object);
  memory_touch(*object, bytes);
}

static void churn_fill(churn *c) {
  for (uint32_t i = 0; i < c->live; i++) {
    churn_replace(c, &c->objects[i]);
  }
}

static void churn_cycle(churn *c) {
  tslab_epoch epoch = epochs_open("cycle", NULL);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  for (uint32_t i = 0; i < c->live / 10; i++) {
    churn_replace(c, &c->objects[random_below(&c->state, c->live)]);
  }
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

// Resident bytes after `cycles` cycles.
static double churn_run(churn *c, uint64_t cycles) {
  double sum = 0;
  for (uint64_t i = 0; i < cycles; i++) {
    churn_cycle(c);
    if (i + SAMPLES >= cycles) {
      sum += (double)(memory_resident_bytes() - c->before);
    }
  }
  return sum / SAMPLES;
}

static void churn_report(const churn *c, uint64_t cycles, double early, double late) {
  double growth = (late / early - 1) * 100;
  report_open("epoch_churn");
  report_text("sizes", c->is_mixed ? "mixed" : "128");
  report_count("cycles", cycles);
  report_count("live", c->live);
  report_count("early_bytes", (uint64_t)early);
  report_count("late_bytes", (uint64_t)late);
  report_real("growth_pct", growth);
  report_close("resident memory from cycle %u to %llu: %.1f to %.1f MiB, %+.2f %%", FIRST_CYCLES,
               (unsigned long long)cycles, early / 1048576, late / 1048576, growth);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_churn [--mixed] [CYCLES [LIVE]]");
  bool is_mixed = args_take_flag(&a, "--mixed");
  uint64_t cycles = args_number(&a, 0, 1000);
  churn c = {.live = args_number32(&a, 1, 100000), .is_mixed = is_mixed, .state = 42};
  args_end(&a, 2);
  if (cycles < FIRST_CYCLES + SAMPLES) {
    args_refuse(&a, "too few cycles", a.values[0]);
  }
  epochs_demand();
  c.objects = memory_map(c.live * sizeof *c.objects);
  c.before = memory_resident_bytes();

  churn_fill(&c);
  double early = churn_run(&c, FIRST_CYCLES);
  double late = churn_run(&c, cycles - FIRST_CYCLES);
  churn_report(&c, cycles, early, late);
}
