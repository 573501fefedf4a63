// A server that leaks: requests of 20 objects of 16 to 1,039 bytes, of which 1 in 100 is lost and
// 1 in 100 goes to a cache of 5,000, at a random place of which an older one is freed. What is
// resident in the end, beside what lives and what is lost? Requests come 100 a millisecond.
// --wrapped gives each its epoch.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define OBJECTS 20u
#define CACHED 5000u
#define A_MILLISECOND 100u

typedef struct object {
  char *start;
  size_t bytes;
} object;

typedef struct server {
  bool is_wrapped;
  uint32_t state;
  uint64_t requests;
  uint64_t before;        // resident bytes, before the first object
  uint64_t cached_bytes;  // as asked for
  uint64_t lost_bytes;    // as asked for
  object *cache;
} server;

static object object_make(server *s) {
  object o = {NULL, 16 + (random_next(&s->state) & 1023)};
  o.start = malloc(o.bytes);
  memory_demand(o.start);
  memory_touch(o.start, o.bytes);
  return o;
}

static void cache_put(server *s, const object *o) {
  object *place = &s->cache[random_below(&s->state, CACHED)];
  s->cached_bytes += o->bytes - place->bytes;
  free(place->start);
  *place = *o;
}

static void object_end(server *s, const object *o) {
  uint32_t fate = random_below(&s->state, 100);
  if (fate == 0) {
    s->lost_bytes += o->bytes;
  } else if (fate == 1) {
    cache_put(s, o);
  } else {
    free(o->start);
  }
}

static void request_serve(server *s) {
  object objects[OBJECTS];
  for (unsigned i = 0; i < OBJECTS; i++) {
    objects[i] = object_make(s);
  }
  for (unsigned i = 0; i < OBJECTS; i++) {
    object_end(s, &objects[i]);
  }
}

static void request_wrap(server *s) {
  tslab_epoch epoch = epochs_open("request", NULL);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  request_serve(s);
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

static void server_run(server *s) {
  uint64_t start = clock_ns();
  for (uint64_t i = 0; i < s->requests; i++) {
    if (i % A_MILLISECOND == 0) {
      clock_wait_until(start + i / A_MILLISECOND * 1000000u);
    }
    if (s->is_wrapped) {
      request_wrap(s);
    } else {
      request_serve(s);
    }
  }
}

static void server_report(const server *s) {
  uint64_t live = s->cached_bytes + s->lost_bytes;
  double ratio = ((double)memory_resident_bytes() - (double)s->before) / (double)live;
  report_open("request_leaks");
  report_text("mode", s->is_wrapped ? "wrapped" : "plain");
  report_count("requests", s->requests);
  report_count("cached_bytes", s->cached_bytes);
  report_count("lost_bytes", s->lost_bytes);
  report_real("resident_over_live", ratio);
  report_close(
      "%s: %llu requests, %.2f bytes resident for each live one, %.1f MiB live of which %.1f lost",
      s->is_wrapped ? "wrapped" : "plain", (unsigned long long)s->requests, ratio,
      (double)live / 1048576, (double)s->lost_bytes / 1048576);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "request_leaks [--wrapped] [REQUESTS]");
  server s = {.is_wrapped = args_take_flag(&a, "--wrapped"), .state = 42};
  s.requests = args_number(&a, 0, 100000);
  args_end(&a, 1);
  if (s.requests < A_MILLISECOND) {
    args_refuse(&a, "too few requests", a.values[0]);
  }
  if (s.is_wrapped) {
    epochs_demand();
  }
  s.cache = memory_map(CACHED * sizeof *s.cache);
  s.before = memory_resident_bytes();
  server_run(&s);
  server_report(&s);
}
