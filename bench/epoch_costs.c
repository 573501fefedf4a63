// What an epoch itself costs, in one thread: a stay in an empty one and in one of many objects, and
// two calls into a shared library that do nothing; its two ends alone, and its two ends around one
// object. The best of some rounds: nothing but the machine makes one slower.
#include "common/args.h"
#include "common/cost.h"
#include "common/empty.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/report.h"

#include <stdlib.h>

#define OBJECT_BYTES 64u
#define MANY_OBJECTS 1000000u
#define MANY_SIZES 64u  // multiples of 16 bytes

static void cost_enter_leave(void *context, uint64_t count) {
  const tslab_epoch *epoch = context;
  for (uint64_t i = 0; i < count; i++) {
    tslab_scope scope;
    epochs_check(tslab_scope_enter(&scope, *epoch));
    epochs_check(tslab_scope_leave(&scope));
  }
}

static void cost_empty_calls(void *context, uint64_t count) {
  const tslab_epoch *epoch = context;
  for (uint64_t i = 0; i < count; i++) {
    tslab_scope scope;
    epochs_check(empty_enter(&scope, *epoch));
    epochs_check(empty_leave(&scope));
  }
}

// An epoch of objects of many sizes, none of which is freed.
static tslab_epoch epoch_large(void) {
  tslab_epoch epoch = epochs_open("large", NULL);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  for (unsigned i = 0; i < MANY_OBJECTS; i++) {
    memory_demand(malloc(16 * (1 + i % MANY_SIZES)));
  }
  epochs_check(tslab_scope_leave(&scope));
  return epoch;
}

static void cost_open_close(void *context, uint64_t count) {
  (void)context;
  for (uint64_t i = 0; i < count; i++) {
    epochs_close(epochs_open("cost", NULL));
  }
}

static void cost_open_use_close(void *context, uint64_t count) {
  (void)context;
  for (uint64_t i = 0; i < count; i++) {
    tslab_epoch epoch = epochs_open("cost", NULL);
    tslab_scope scope;
    epochs_check(tslab_scope_enter(&scope, epoch));
    char *object = malloc(OBJECT_BYTES);
    memory_demand(object);
    object[0] = 1;
    free(object);
    epochs_check(tslab_scope_leave(&scope));
    epochs_close(epoch);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_costs [COUNT [ROUNDS]]");
  uint64_t count = args_number(&a, 0, 200000);
  uint64_t rounds = args_number(&a, 1, 15);
  args_end(&a, 2);
  epochs_demand();

  tslab_epoch empty = epochs_open("empty", NULL);
  tslab_epoch large = epoch_large();
  double floor_ns = cost_best_ns(cost_empty_calls, &empty, 10 * count, rounds);
  double stay_ns = cost_best_ns(cost_enter_leave, &empty, 10 * count, rounds);
  double large_ns = cost_best_ns(cost_enter_leave, &large, 10 * count, rounds);
  epochs_close(empty);
  epochs_check(tslab_epoch_release(large));
  double unused_ns = cost_best_ns(cost_open_close, NULL, count, rounds);
  double used_ns = cost_best_ns(cost_open_use_close, NULL, count, rounds);

  report_open("epoch_costs");
  report_count("count", count);
  report_count("rounds", rounds);
  report_real("floor_ns", floor_ns);
  report_real("enter_leave_ns", stay_ns);
  report_real("over_floor_ns", stay_ns - floor_ns);
  report_real("large_over_floor_ns", large_ns - floor_ns);
  report_real("open_close_ns", unused_ns);
  report_real("open_use_close_ns", used_ns);
  report_close(
      "enter + leave %.2f ns, %.2f ns where %u objects live, two empty calls %.2f ns; open + close "
      "%.1f ns, with one object freed %.1f ns",
      stay_ns, large_ns, MANY_OBJECTS, floor_ns, unused_ns, used_ns);
}
