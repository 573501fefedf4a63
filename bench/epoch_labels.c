// A program of many labels, each of which has few objects: in each round a request of every label
// allocates OBJECTS of 16 to 1,015 bytes and frees them; a round takes a millisecond at least.
// With --keeps the first object of each request lives for 20 rounds more. --wrapped gives each
// request its epoch. Resident memory is that after the last round, over what was there before.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEPT_ROUNDS 20u
#define MOST_LABELS 1000u
#define MOST_OBJECTS 1000u
#define NAME_BYTES 16u
#define ROUND_PAUSE_NS 1000000

typedef struct labels {
  bool is_wrapped;
  bool keeps;
  uint32_t state;
  uint32_t count;
  uint32_t rounds;
  uint32_t objects;  // of a request
  char (*names)[NAME_BYTES];
  char *(*kept)[KEPT_ROUNDS];  // by label
} labels;

static void objects_make(labels *l, char **objects) {
  for (uint32_t i = 0; i < l->objects; i++) {
    size_t bytes = 16 + random_below(&l->state, 1000);
    objects[i] = malloc(bytes);
    memory_demand(objects[i]);
    memory_touch(objects[i], bytes);
  }
}

static void object_keep(char **place, char **object) {
  char *older = *place;
  *place = *object;
  *object = older;
}

static void request_work(labels *l, uint32_t label, uint32_t round) {
  char *objects[MOST_OBJECTS];
  objects_make(l, objects);
  if (l->keeps) {
    object_keep(&l->kept[label][round % KEPT_ROUNDS], &objects[0]);
  }
  for (uint32_t i = 0; i < l->objects; i++) {
    free(objects[i]);
  }
}

static void request_run(labels *l, uint32_t label, uint32_t round) {
  if (!l->is_wrapped) {
    request_work(l, label, round);
    return;
  }
  tslab_epoch epoch = epochs_open(l->names[label], NULL);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  request_work(l, label, round);
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

// Nanoseconds that the requests took, without the pauses.
static uint64_t rounds_run(labels *l) {
  uint64_t work_ns = 0;
  for (uint32_t round = 0; round < l->rounds; round++) {
    uint64_t start = clock_ns();
    for (uint32_t label = 0; label < l->count; label++) {
      request_run(l, label, round);
    }
    work_ns += clock_ns() - start;
    nanosleep(&(struct timespec){0, ROUND_PAUSE_NS}, NULL);
  }
  return work_ns;
}

static void labels_open(labels *l) {
  l->names = memory_map(l->count * sizeof *l->names);
  l->kept = memory_map(l->count * sizeof *l->kept);
  for (uint32_t i = 0; i < l->count; i++) {
    snprintf(l->names[i], sizeof l->names[i], "label %u", (unsigned)i);
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_labels [--wrapped] [--keeps] [LABELS [ROUNDS [OBJECTS]]]");
  labels l = {.is_wrapped = args_take_flag(&a, "--wrapped"),
              .keeps = args_take_flag(&a, "--keeps"),
              .state = 42};
  l.count = args_number32(&a, 0, 50);
  l.rounds = args_number32(&a, 1, 1000);
  l.objects = args_number32(&a, 2, 10);
  args_end(&a, 3);
  if (l.count > MOST_LABELS || l.objects > MOST_OBJECTS) {
    args_refuse(&a, "at most 1000 labels and objects", "");
  }
  if (l.is_wrapped) {
    epochs_demand();
  }
  labels_open(&l);
  uint64_t before = memory_resident_bytes();
  double us = (double)rounds_run(&l) / l.rounds / l.count / 1000;
  double resident_mb = ((double)memory_resident_bytes() - (double)before) / 1048576;
  report_open("epoch_labels");
  report_text("mode", l.is_wrapped ? "wrapped" : "plain");
  report_real("request_us", us);
  report_real("resident_mb", resident_mb);
  report_close("%s: %.2f us a request, %.2f MiB resident", l.is_wrapped ? "wrapped" : "plain", us,
               resident_mb);
}
