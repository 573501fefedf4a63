// Requests of many tenants. Each request has 100 objects of 16 to 1,039 bytes, and comes from a
// random one of TENANTS tenants; with --turns they take turns, of 100 requests each. --wrapped
// gives each request an epoch, --below one below that of its tenant, which stays open. With --late
// the objects are freed 64 requests later; with --batches a request has 20,000 objects, of which
// one in a hundred goes to a store of 20,000, in place of another one. What does a request cost,
// and what is resident at the end?
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define OBJECTS 100u
#define BATCH_OBJECTS 20000u
#define SURVIVES_1_IN 100u
#define STORED 20000u
#define LATE 64u
#define TURN 100u

typedef struct server {
  bool is_wrapped;
  bool is_late;
  bool is_batch;
  bool takes_turns;
  tslab_epoch *tenants;  // TSLAB_DEFAULT: requests have no parent
  uint32_t tenant_count;
  uint32_t state;
  uint32_t objects;   // of a request
  char **of_request;  // the objects of the one that is served
  char **late[LATE];  // those of the last ones
  char **store;
} server;

static void objects_make(server *s, char **objects) {
  for (uint32_t i = 0; i < s->objects; i++) {
    size_t bytes = 16 + (random_next(&s->state) & 1023);
    objects[i] = malloc(bytes);
    memory_demand(objects[i]);
    memory_touch(objects[i], bytes);
  }
}

static void objects_free(const server *s, char **objects) {
  for (uint32_t i = 0; i < s->objects; i++) {
    free(objects[i]);
    objects[i] = NULL;
  }
}

static void survivors_keep(server *s) {
  for (uint32_t i = 0; i < s->objects; i += SURVIVES_1_IN) {
    char **place = &s->store[random_below(&s->state, STORED)];
    free(*place);
    *place = s->of_request[i];
    s->of_request[i] = NULL;
  }
}

static void request_work(server *s) {
  objects_make(s, s->of_request);
  if (s->is_batch) {
    survivors_keep(s);
  }
  if (!s->is_late) {
    objects_free(s, s->of_request);
  }
}

static void request_serve(server *s, uint64_t number) {
  uint32_t tenant = s->takes_turns ? (uint32_t)(number / TURN % s->tenant_count)
                                   : random_below(&s->state, s->tenant_count);
  if (s->is_late) {
    s->of_request = s->late[number % LATE];
    objects_free(s, s->of_request);
  }
  if (!s->is_wrapped) {
    request_work(s);
    return;
  }
  tslab_epoch_options options = {.size = sizeof options, .parent = s->tenants[tenant]};
  tslab_epoch epoch = epochs_open("request", &options);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  request_work(s);
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

static void server_open(server *s, bool is_below) {
  s->objects = s->is_batch ? BATCH_OBJECTS : OBJECTS;
  s->of_request = memory_map(s->objects * sizeof *s->of_request);
  s->store = memory_map(STORED * sizeof *s->store);
  for (unsigned i = 0; i < LATE; i++) {
    s->late[i] = memory_map(s->objects * sizeof **s->late);
  }
  s->tenants = memory_map(s->tenant_count * sizeof *s->tenants);
  for (uint32_t i = 0; is_below && i < s->tenant_count; i++) {
    s->tenants[i] = epochs_open("tenant", NULL);
  }
}

int main(int argc, char **argv) {
  args a = args_open(
      argc, argv,
      "epoch_tenants [--wrapped | --below] [--late | --batches] [--turns] [TENANTS [REQUESTS]]");
  server s = {.state = 42};
  s.is_wrapped = args_take_flag(&a, "--wrapped");
  bool is_below = args_take_flag(&a, "--below");
  s.is_late = args_take_flag(&a, "--late");
  s.is_batch = args_take_flag(&a, "--batches");
  s.takes_turns = args_take_flag(&a, "--turns");
  s.tenant_count = args_number32(&a, 0, 1000);
  uint64_t count = args_number(&a, 1, s.is_batch ? 400 : 200000);
  args_end(&a, 2);
  if (s.is_late && s.is_batch) {
    args_refuse(&a, "not both", "--late --batches");
  }
  s.is_wrapped = s.is_wrapped || is_below;
  if (s.is_wrapped) {
    epochs_demand();
  }
  server_open(&s, is_below);
  uint64_t before = memory_resident_bytes(), start = clock_ns();
  for (uint64_t i = 0; i < count; i++) {
    request_serve(&s, i);
  }
  double us = (double)(clock_ns() - start) / (double)count / 1000;
  double mb = ((double)memory_resident_bytes() - (double)before) / 1048576;
  const char *mode = is_below ? "below" : s.is_wrapped ? "wrapped" : "plain";
  report_open("epoch_tenants");
  report_text("mode", mode);
  report_real("request_us", us);
  report_real("resident_mb", mb);
  report_close("%s: %.2f us a request, %.1f MiB resident at the end", mode, us, mb);
}
