// Half of the threads only allocate, the other half only free; batches travel through one queue (in
// the manner of xmalloc-test).
#include "common/args.h"
#include "common/memory.h"
#include "common/queue.h"
#include "common/rate.h"
#include "common/sizes.h"
#include "common/threads.h"

#include <stdlib.h>

#define BATCH_OBJECTS 255u

typedef struct batch {
  void *objects[BATCH_OBJECTS];
} batch;

typedef struct market {
  queue batches;
  uint64_t batches_each;
} market;

static batch *batch_make(uint32_t *state) {
  batch *b = malloc(sizeof *b);
  memory_demand(b);
  for (unsigned i = 0; i < BATCH_OBJECTS; i++) {
    size_t bytes = size_skewed(state, 16, 6);
    char *object = malloc(bytes);
    memory_demand(object);
    memory_touch(object, bytes);
    b->objects[i] = object;
  }
  return b;
}

static void batch_drop(batch *b) {
  for (unsigned i = 0; i < BATCH_OBJECTS; i++) {
    free(b->objects[i]);
  }
  free(b);
}

static void market_thread(void *context, unsigned index) {
  market *m = context;
  uint32_t state = random_seed(42, index);
  for (uint64_t i = 0; i < m->batches_each; i++) {
    if (index % 2 == 0) {
      queue_push(&m->batches, batch_make(&state));
    } else {
      batch_drop(queue_pop(&m->batches));
    }
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_xmalloc [THREADS [OBJECTS]]");
  unsigned pairs = (args_threads(&a, 0, 2) + 1) / 2;
  uint64_t objects = args_number(&a, 1, 20000000);
  args_end(&a, 2);
  market m = {.batches_each = objects / (BATCH_OBJECTS + 1) / pairs + 1};
  queue_open(&m.batches);

  uint64_t ns = threads_run(2 * pairs, market_thread, &m);
  uint64_t done = m.batches_each * pairs * (BATCH_OBJECTS + 1);
  rate_report(&(rate){"shape_xmalloc", "Mobjects/s", 2 * pairs, done, 1e6, ns});
}
