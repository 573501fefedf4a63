// Many epochs open at once, ten small objects in each, allocated in turns: one object in each
// epoch, then the next one in each. A turn over all of them meets every cache miss that there can
// be; a turn over sixteen while all are open tells what their number itself costs. Turns meet
// memory that was used before; the first fill, which faults pages in, is told on its own.
#include "common/args.h"
#include "common/memory.h"
#include "common/places.h"
#include "common/report.h"

#define NEAR 16u

typedef struct many {
  uint32_t count;
  uint64_t allocations;
  place *places;
  double fresh_ns;
  double near_ns;
  double all_ns;
  double kib;  // of an epoch
} many;

static void many_run(many *m) {
  uint64_t before = memory_resident_bytes();
  places_open(m->places, m->count);
  m->fresh_ns = (double)places_fill_ns(m->places, m->count) / m->count / PLACE_OBJECTS;
  m->kib = ((double)memory_resident_bytes() - (double)before) / 1024 / m->count;
  m->near_ns = places_turn_ns(m->places, m->count < NEAR ? m->count : NEAR, m->allocations);
  m->all_ns = places_turn_ns(m->places, m->count, m->allocations);
  places_close(m->places, m->count);
}

static void many_report(const many *m) {
  report_open("many_epochs");
  report_count("epochs", m->count);
  report_real("near_ns", m->near_ns);
  report_real("all_ns", m->all_ns);
  report_real("fresh_ns", m->fresh_ns);
  report_real("epoch_kib", m->kib);
  report_close(
      "%u epochs: %.1f ns an allocation in turns over %u, %.1f ns over all, %.1f ns at first, %.2f "
      "KiB resident each",
      m->count, m->near_ns, m->count < NEAR ? m->count : NEAR, m->all_ns, m->fresh_ns, m->kib);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "many_epochs [EPOCHS [ALLOCATIONS]]");
  many m = {.count = args_number32(&a, 0, 100000), .allocations = args_number(&a, 1, 4000000)};
  args_end(&a, 2);
  epochs_demand();
  // The library says once that so many are open, which is on purpose here.
  epochs_check(tslab_option_set("on_error", "ignore"));
  m.places = memory_map(m.count * sizeof *m.places);
  many_run(&m);
  many_report(&m);
}
