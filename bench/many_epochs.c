// Many epochs open at once, ten small objects in each, allocated in turns: one object in each
// epoch, then the next one in each. A turn over all of them meets every cache miss that there can
// be; a turn over sixteen while all are open tells what their number itself costs. Turns meet
// memory that was used before; the first fill, which faults pages in, is told on its own.
#include "common/args.h"
#include "common/memory.h"
#include "common/places.h"
#include "common/report.h"

#define NEAR 16u

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "many_epochs [EPOCHS [ALLOCATIONS]]");
  uint32_t count = args_number32(&a, 0, 100000);
  uint64_t allocations = args_number(&a, 1, 4000000);
  args_end(&a, 2);
  epochs_demand();
  place *places = memory_map(count * sizeof *places);

  uint64_t before = memory_resident_bytes();
  places_open(places, count);
  double fresh_ns = (double)places_fill_ns(places, count) / count / PLACE_OBJECTS;
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
