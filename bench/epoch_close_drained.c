// An epoch in which many objects were allocated and freed ends, and its memory is to go back at
// once: how long the close takes, and how long it takes from its start until the process is as
// small as before. A first epoch of the same kind warms up and is not counted. With --helper the
// allocator's thread gives the memory back.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/report.h"

#include <stdlib.h>

#define PATIENCE_NS 1000000000u

typedef struct drained {
  char **objects;
  uint32_t count;
  size_t bytes;
  bool has_helper;
  uint64_t before;  // resident bytes: when the epoch opened, when its objects lived, and at the end
  uint64_t full;
  uint64_t after;
  uint64_t close_ns;
  uint64_t back_ns;
} drained;

static void objects_run(drained *d) {
  for (uint32_t i = 0; i < d->count; i++) {
    d->objects[i] = malloc(d->bytes);
    memory_demand(d->objects[i]);
    memory_touch(d->objects[i], d->bytes);
  }
  d->full = memory_resident_bytes();
  for (uint32_t i = 0; i < d->count; i++) {
    free(d->objects[i]);
  }
}

// Nanoseconds from `start` until resident memory is within 5 % of what it was; gives up after a
// second.
static uint64_t back_wait_ns(drained *d, uint64_t start) {
  uint64_t ns = 0;
  do {
    d->after = memory_resident_bytes();
    ns = clock_ns() - start;
  } while (d->after > d->before + d->before / 20 && ns < PATIENCE_NS);
  return ns;
}

static void drained_run(drained *d) {
  tslab_epoch_options now = {.size = sizeof now, .purge = TSLAB_PURGE_NOW};
  d->before = memory_resident_bytes();
  tslab_epoch epoch = epochs_open("drained", &now);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  objects_run(d);
  epochs_check(tslab_scope_leave(&scope));
  uint64_t start = clock_ns();
  epochs_close(epoch);
  d->close_ns = clock_ns() - start;
  d->back_ns = back_wait_ns(d, start);
}

static void drained_report(const drained *d) {
  double back_ms = (double)d->back_ns / 1e6;
  report_open("epoch_close_drained");
  report_text("helper", d->has_helper ? "yes" : "no");
  report_count("objects", d->count);
  report_count("bytes", d->bytes);
  report_count("before_bytes", d->before);
  report_count("full_bytes", d->full);
  report_count("after_bytes", d->after);
  report_count("close_ns", d->close_ns);
  report_real("back_ms", back_ms);
  report_close("close %llu ns; resident %.1f, full %.1f, after %.1f MiB, %.2f ms from the close on",
               (unsigned long long)d->close_ns, (double)d->before / 1048576,
               (double)d->full / 1048576, (double)d->after / 1048576, back_ms);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_close_drained [--helper] [OBJECTS [BYTES]]");
  drained d = {.has_helper = args_take_flag(&a, "--helper")};
  d.count = args_number32(&a, 0, 1000000);
  d.bytes = args_number(&a, 1, 64);
  args_end(&a, 2);
  epochs_demand();
  epochs_check(tslab_option_set("helper", d.has_helper ? "always" : "never"));
  d.objects = memory_map(d.count * sizeof *d.objects);

  drained_run(&d);
  drained_run(&d);
  drained_report(&d);
}
