// Many epochs open at once, ten small objects in each, allocated in turns: one object in each
// epoch, then the next one in each. A turn over all of them meets every cache miss that there can
// be; a turn over sixteen while all are open tells what their number itself costs. Turns meet
// memory that was used before; the first fill, which faults pages in, is told on its own.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/report.h"

#include <stdlib.h>

#define OBJECTS 10u
#define OBJECT_BYTES 32u
#define NEAR 16u

typedef struct place {
  tslab_epoch epoch;
  char *objects[OBJECTS];
} place;

static void place_fill(place *p, unsigned index) {
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, p->epoch));
  char *object = malloc(OBJECT_BYTES);
  memory_demand(object);
  object[0] = 1;
  p->objects[index] = object;
  epochs_check(tslab_scope_leave(&scope));
}

static uint64_t places_fill_ns(place *places, uint32_t count) {
  uint64_t start = clock_ns();
  for (unsigned index = 0; index < OBJECTS; index++) {
    for (uint32_t i = 0; i < count; i++) {
      place_fill(&places[i], index);
    }
  }
  return clock_ns() - start;
}

static void places_clear(place *places, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tslab_scope scope;
    epochs_check(tslab_scope_enter(&scope, places[i].epoch));
    for (unsigned index = 0; index < OBJECTS; index++) {
      free(places[i].objects[index]);
    }
    epochs_check(tslab_scope_leave(&scope));
  }
}

// Nanoseconds of one allocation, with the way into its epoch and out again. Places are full before
// and after.
static double places_turn_ns(place *places, uint32_t count, uint64_t allocations) {
  uint64_t turns = allocations / (count * OBJECTS) + 1;
  uint64_t ns = 0;
  places_clear(places, count);
  places_fill_ns(places, count);
  for (uint64_t turn = 0; turn < turns; turn++) {
    places_clear(places, count);
    ns += places_fill_ns(places, count);
  }
  return (double)ns / (double)(turns * count * OBJECTS);
}

static void places_open(place *places, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    places[i].epoch = epochs_open("many", NULL);
  }
}

static void places_close(place *places, uint32_t count) {
  places_clear(places, count);
  for (uint32_t i = 0; i < count; i++) {
    epochs_close(places[i].epoch);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "many_epochs [EPOCHS [ALLOCATIONS]]");
  uint32_t count = args_number32(&a, 0, 100000);
  uint64_t allocations = args_number(&a, 1, 4000000);
  args_end(&a, 2);
  epochs_demand();
  place *places = memory_map(count * sizeof *places);

  uint64_t before = memory_resident_bytes();
  places_open(places, count);
  double fresh_ns = (double)places_fill_ns(places, count) / count / OBJECTS;
  double kib = ((double)memory_resident_bytes() - (double)before) / 1024 / count;
  double near_ns = places_turn_ns(places, count < NEAR ? count : NEAR, allocations);
  double all_ns = places_turn_ns(places, count, allocations);
  places_close(places, count);

  report_open("many_epochs");
  report_count("epochs", count);
  report_real("near_ns", near_ns);
  report_real("all_ns", all_ns);
  report_real("fresh_ns", fresh_ns);
  report_real("epoch_kib", kib);
  report_close(
      "%u epochs: %.1f ns an allocation in turns over %u, %.1f ns over all, %.1f ns at first, %.2f "
      "KiB resident each",
      count, near_ns, count < NEAR ? count : NEAR, all_ns, fresh_ns, kib);
}
