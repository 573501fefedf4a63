// Batches of one size each: most of a batch is freed last in first out, the rest later, oldest
// first, or by the other thread (in the manner of sh6bench and sh8bench).
#include "common/args.h"
#include "common/mailbox.h"
#include "common/memory.h"
#include "common/rate.h"
#include "common/sizes.h"
#include "common/threads.h"

#include <stdlib.h>

#define BATCH_OBJECTS 1024u
#define KEPT_OBJECTS (BATCH_OBJECTS / 4)
#define KEPT_BATCHES 8u

typedef struct kept {
  char *objects[KEPT_OBJECTS];
} kept;

typedef struct yard {
  mailbox box;
  uint64_t batches;
} yard;

static void batch_make(char **objects, uint32_t *state) {
  size_t bytes = size_skewed(state, 8, 7);
  for (unsigned i = 0; i < BATCH_OBJECTS; i++) {
    objects[i] = malloc(bytes);
    memory_demand(objects[i]);
    memory_touch(objects[i], bytes);
  }
}

static void kept_drop(kept *k) {
  for (unsigned i = 0; k != NULL && i < KEPT_OBJECTS; i++) {
    free(k->objects[i]);
  }
  free(k);
}

// Frees three of four, last first; the others stay as a block of their own.
static kept *batch_thin(char **objects) {
  kept *k = malloc(sizeof *k);
  memory_demand(k);
  unsigned count = KEPT_OBJECTS;
  for (unsigned i = BATCH_OBJECTS; i-- > 0;) {
    if (i % 4 == 0) {
      k->objects[--count] = objects[i];
    } else {
      free(objects[i]);
    }
  }
  return k;
}

static void yard_thread(void *context, unsigned index) {
  yard *y = context;
  uint32_t state = random_seed(42, index);
  char *objects[BATCH_OBJECTS];
  kept *older[KEPT_BATCHES] = {NULL};
  for (uint64_t i = 0; i < y->batches; i++) {
    batch_make(objects, &state);
    kept **slot = &older[i % KEPT_BATCHES];
    kept_drop(i % 2 == 0 ? *slot : mailbox_swap(&y->box, *slot));
    *slot = batch_thin(objects);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_batches [THREADS [OPS]]");
  unsigned threads = args_threads(&a, 0, 2);
  uint64_t operations = args_number(&a, 1, 80000000);
  args_end(&a, 2);
  yard y = {.batches = operations / threads / 2 / BATCH_OBJECTS + 1};

  uint64_t ns = threads_run(threads, yard_thread, &y);
  rate_report(&(rate){"shape_batches", "Mops/s", threads, 2 * y.batches * BATCH_OBJECTS * threads,
                      1e6, ns});
}
