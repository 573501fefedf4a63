// Threads that live for a moment: each takes over the objects that another thread left, replaces
// some, and ends (in the manner of glibc-thread, mleak and mstress).
#include "common/args.h"
#include "common/blocks.h"
#include "common/mailbox.h"
#include "common/rate.h"
#include "common/sizes.h"
#include "common/threads.h"

#include <pthread.h>
#include <stdio.h>

#define ESTATE_OBJECTS 256u

typedef struct estate {
  block objects[ESTATE_OBJECTS];
} estate;

typedef struct town {
  mailbox heirless;  // an estate between two owners, so that estates wander between lanes
  estate *estates;   // one a lane, one in the mailbox
  uint64_t lives;
  uint64_t operations;
} town;

typedef struct life {
  town *town;
  estate *estate;
  uint32_t state;
} life;

static void *life_main(void *argument) {
  life *l = argument;
  for (uint64_t i = 0; i < l->town->operations; i += 2) {
    block *object = &l->estate->objects[random_below(&l->state, ESTATE_OBJECTS)];
    block_replace(object, size_skewed(&l->state, 16, 6));
  }
  l->estate = mailbox_swap(&l->town->heirless, l->estate);
  return NULL;
}

static void lane_thread(void *context, unsigned index) {
  town *t = context;
  life l = {t, &t->estates[index], random_seed(42, index)};
  for (uint64_t i = 0; i < t->lives; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, life_main, &l) != 0 || pthread_join(thread, NULL) != 0) {
      fputs("cannot run a thread\n", stderr);
      exit(1);
    }
  }
}

static void town_open(town *t, unsigned lanes) {
  t->estates = memory_map((lanes + 1) * sizeof(estate));
  uint32_t state = 42;
  for (unsigned i = 0; i < (lanes + 1) * ESTATE_OBJECTS; i++) {
    t->estates[i / ESTATE_OBJECTS].objects[i % ESTATE_OBJECTS] =
        block_make(size_skewed(&state, 16, 6));
  }
  mailbox_swap(&t->heirless, &t->estates[lanes]);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_thread_churn [LANES [THREADS [OPS]]]");
  unsigned lanes = args_threads(&a, 0, 2);
  town t = {.lives = args_number(&a, 1, 30000) / lanes, .operations = args_number(&a, 2, 400)};
  args_end(&a, 3);
  town_open(&t, lanes);

  uint64_t ns = threads_run(lanes, lane_thread, &t);
  rate_report(&(rate){"shape_thread_churn", "kthreads/s", lanes, t.lives * lanes, 1e3, ns});
}
