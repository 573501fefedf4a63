// What an epoch costs while ever more of them are open: 1, 10, 100 and so on. For each number, in a
// process that knew no epochs before: an allocation in turns over all of them, with the way into
// its epoch and out again; that way alone, in turns, too; and resident memory, of an epoch that was
// opened and of one with ten small objects. The floor is two calls into a shared library that does
// nothing, over the same list.
#include "common/args.h"
#include "common/child.h"
#include "common/cost.h"
#include "common/empty.h"
#include "common/memory.h"
#include "common/places.h"
#include "common/report.h"

#define POINTS_MAX 10u

typedef struct point {
  uint32_t epochs;
  uint64_t operations;
  uint64_t rounds;
  place *places;
  double alloc_ns;
  double enter_leave_ns;
  double floor_ns;
  double opened_kib;
  double filled_kib;
} point;

static void turn_epochs(void *context, uint64_t count) {
  const point *p = context;
  uint32_t next = 0;
  for (uint64_t i = 0; i < count; i++) {
    tslab_scope scope;
    epochs_check(tslab_scope_enter(&scope, p->places[next].epoch));
    epochs_check(tslab_scope_leave(&scope));
    next = next + 1 == p->epochs ? 0 : next + 1;
  }
}

static void turn_empty(void *context, uint64_t count) {
  const point *p = context;
  uint32_t next = 0;
  for (uint64_t i = 0; i < count; i++) {
    tslab_scope scope;
    epochs_check(empty_enter(&scope, p->places[next].epoch));
    epochs_check(empty_leave(&scope));
    next = next + 1 == p->epochs ? 0 : next + 1;
  }
}

// The first epoch of a thread brings what all later ones share, and the first look at resident
// memory the code that looks.
static void point_warm_up(void) {
  place first;
  places_open(&first, 1);
  places_fill_ns(&first, 1);
  places_close(&first, 1);
  memory_resident_bytes();
}

static double point_kib(const point *p, uint64_t before) {
  return ((double)memory_resident_bytes() - (double)before) / 1024 / p->epochs;
}

static void point_run(void *context) {
  point *p = context;
  p->places = memory_map(p->epochs * sizeof *p->places);
  point_warm_up();
  uint64_t before = memory_resident_bytes();
  places_open(p->places, p->epochs);
  p->opened_kib = point_kib(p, before);
  places_fill_ns(p->places, p->epochs);
  p->filled_kib = point_kib(p, before);
  p->alloc_ns = places_turn_ns(p->places, p->epochs, p->operations);
  p->enter_leave_ns = cost_best_ns(turn_epochs, p, p->operations, p->rounds);
  p->floor_ns = cost_best_ns(turn_empty, p, p->operations, p->rounds);
}

static void point_report_one(const point *p, const char *name, double value) {
  char key[64];
  snprintf(key, sizeof key, "%s_%u", name, p->epochs);
  report_real(key, value);
}

static void point_report(const point *p) {
  point_report_one(p, "alloc_ns", p->alloc_ns);
  point_report_one(p, "enter_leave_ns", p->enter_leave_ns);
  point_report_one(p, "floor_ns", p->floor_ns);
  point_report_one(p, "opened_kib", p->opened_kib);
  point_report_one(p, "filled_kib", p->filled_kib);
}

static void curve_report(const point *points, unsigned count) {
  const point *last = &points[count - 1];
  report_open("epoch_curve");
  report_count("operations", last->operations);
  report_count("rounds", last->rounds);
  for (unsigned i = 0; i < count; i++) {
    point_report(&points[i]);
  }
  report_close(
      "1 epoch: %.1f ns an allocation, %.1f ns enter + leave; %u: %.1f ns, %.1f ns, %.2f KiB "
      "resident each; two empty calls %.1f ns",
      points[0].alloc_ns, points[0].enter_leave_ns, last->epochs, last->alloc_ns,
      last->enter_leave_ns, last->filled_kib, last->floor_ns);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_curve [MOST [OPERATIONS [ROUNDS]]]");
  uint32_t most = args_number32(&a, 0, 100000);
  uint64_t operations = args_number(&a, 1, 2000000);
  uint64_t rounds = args_number(&a, 2, 5);
  args_end(&a, 3);
  epochs_demand();
  // The library says once that so many are open, which is on purpose here.
  epochs_check(tslab_option_set("on_error", "ignore"));

  point *points = memory_share(POINTS_MAX * sizeof *points);
  unsigned count = 0;
  for (uint64_t epochs = 1; epochs <= most; epochs *= 10) {
    points[count] = (point){.epochs = (uint32_t)epochs, .operations = operations, .rounds = rounds};
    child_run(point_run, &points[count]);
    count++;
  }
  curve_report(points, count);
}
