// One thread allocates, another frees everything, through a ring in batches of 64.
#include "common/args.h"
#include "common/memory.h"
#include "common/report.h"
#include "common/ring.h"
#include "common/threads.h"

#include <stdlib.h>

typedef struct shared {
  ring *ring;
  uint64_t objects;
  size_t bytes;
} shared;

static void produce(shared *s) {
  for (uint64_t position = 0; position < s->objects;) {
    ring_wait_for_room(s->ring, position);
    for (unsigned i = 0; i < RING_BATCH; i++, position++) {
      char *block = malloc(s->bytes);
      memory_demand(block);
      block[0] = 1;
      s->ring->slots[position % RING_SLOTS] = block;
    }
    atomic_store_explicit(&s->ring->written, position, memory_order_release);
  }
}

static void consume(shared *s) {
  for (uint64_t position = 0; position < s->objects;) {
    uint64_t written = ring_wait_for_more(s->ring, position);
    for (; position < written; position++) {
      free(s->ring->slots[position % RING_SLOTS]);
    }
    atomic_store_explicit(&s->ring->taken, position, memory_order_release);
  }
}

static void side_run(void *context, unsigned index) {
  if (index == 0) {
    produce(context);
  } else {
    consume(context);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "producer_consumer [OBJECTS [BYTES]]");
  uint64_t objects = args_number(&a, 0, 60000000);
  shared s = {.bytes = args_number(&a, 1, 64)};
  args_end(&a, 2);
  s.objects = (objects + RING_BATCH - 1) / RING_BATCH * RING_BATCH;
  s.ring = memory_map(sizeof *s.ring);

  uint64_t ns = threads_run(2, side_run, &s);

  double rate = report_million_per_s(s.objects, ns);
  report_open("producer_consumer");
  report_count("objects", s.objects);
  report_count("bytes", s.bytes);
  report_real("rate", rate);
  report_text("unit", "Mobjects/s");
  report_close("producer to consumer, %zu B: %.1f M objects/s", s.bytes, rate);
}
