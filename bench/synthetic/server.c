#include "synthetic/server.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"

#include <stdlib.h>

#define SEED 42u

static request *server_place(server *s, uint64_t number) {
  return &s->ring[number % (s->settings->pattern.lag + 1ull)];
}

static void request_make(server *s, request *r) {
  const pattern *p = &s->settings->pattern;
  r->number = s->counts.requests;
  r->period = s->period.opened;
  r->count = p->objects_least + random_below(&s->state, p->objects_most - p->objects_least + 1);
  for (uint32_t i = 0; i < r->count; i++) {
    uint32_t bytes = mix_draw(&p->sizes, &s->state);
    r->objects[i] = malloc(bytes);
    memory_demand(r->objects[i]);
    memory_touch(r->objects[i], bytes);
  }
  s->counts.objects += r->count;
  s->counts.held += r->count;
  s->period.living += r->count;
}

static void request_end(server *s, request *r) {
  uint32_t leaked_ppm = s->settings->pattern.leaked_ppm;
  uint32_t leaked = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    if (leaked_ppm != 0 && random_below(&s->state, MILLION) < leaked_ppm) {
      leaked++;
    } else {
      free(r->objects[i]);
    }
  }
  s->counts.leaked += leaked;
  s->counts.held -= r->count;
  if (r->period == s->period.opened) {
    s->period.living -= r->count - leaked;
  }
}

static void server_end_oldest(server *s) {
  server_counts *c = &s->counts;
  request *oldest = server_place(s, c->requests - s->settings->pattern.lag);
  uint64_t lag = c->requests - oldest->number;
  c->lag_least = lag < c->lag_least ? lag : c->lag_least;
  c->lag_most = lag > c->lag_most ? lag : c->lag_most;
  request_end(s, oldest);
}

static void server_serve(server *s) {
  period_enter(&s->period);
  request_make(s, server_place(s, s->counts.requests));
  if (s->counts.requests >= s->settings->pattern.lag) {
    server_end_oldest(s);
  }
  period_leave(&s->period);
  s->counts.requests++;
}

static void server_time(server *s, uint64_t due_ns, uint64_t start_ns) {
  server_serve(s);
  histogram_add(&s->starts, start_ns - due_ns);
  histogram_add(&s->latencies, clock_ns() - due_ns);
}

static void server_run_on_schedule(server *s) {
  uint64_t requests = schedule_requests(&s->schedule);
  for (uint64_t i = 0; i < requests; i++) {
    uint64_t due = schedule_due_ns(&s->schedule, i);
    arrival how = schedule_wait(&s->schedule, due);
    uint64_t start = clock_ns();
    if (start >= s->schedule.end_ns && how == ARRIVAL_BUSY) {
      s->counts.unserved = requests - i;
      return;
    }
    s->counts.busy += how == ARRIVAL_BUSY;
    s->counts.overslept += how == ARRIVAL_OVERSLEPT;
    server_time(s, due, start);
  }
}

static void server_run_closed(server *s) {
  schedule_wait(&s->schedule, s->schedule.start_ns);
  uint64_t start = clock_ns();
  while (start < s->schedule.end_ns) {
    server_time(s, start, start);
    start = clock_ns();
  }
}

static void server_drain(server *s) {
  uint32_t lag = s->settings->pattern.lag;
  uint64_t requests = s->counts.requests;
  for (uint64_t i = requests > lag ? requests - lag : 0; i < requests; i++) {
    request_end(s, server_place(s, i));
  }
}

void server_open(server *s, const settings *wanted, unsigned index) {
  const pattern *p = &wanted->pattern;
  s->settings = wanted;
  s->period.settings = wanted;
  s->state = random_seed(SEED, index);
  s->counts.lag_least = UINT64_MAX;
  s->ring = memory_map((p->lag + 1ull) * sizeof *s->ring);
  char **objects = memory_map((p->lag + 1ull) * p->objects_most * sizeof *objects);
  for (uint64_t i = 0; i <= p->lag; i++) {
    s->ring[i].objects = objects + i * p->objects_most;
  }
}

void server_run(server *s) {
  schedule_enter();
  if (s->schedule.interval_ns > 0) {
    server_run_on_schedule(s);
  } else {
    server_run_closed(s);
  }
  uint64_t held = s->counts.held;
  server_drain(s);
  s->counts.held = held;
  period_end(&s->period);
}

void server_merge(server *into, const server *from) {
  server_counts *c = &into->counts;
  const server_counts *f = &from->counts;
  c->requests += f->requests;
  c->objects += f->objects;
  c->leaked += f->leaked;
  c->held += f->held;
  c->busy += f->busy;
  c->overslept += f->overslept;
  c->unserved += f->unserved;
  c->lag_least = f->lag_least < c->lag_least ? f->lag_least : c->lag_least;
  c->lag_most = f->lag_most > c->lag_most ? f->lag_most : c->lag_most;
  into->period.opened += from->period.opened;
  into->period.left += from->period.left;
  into->period.survivors += from->period.survivors;
  histogram_merge(&into->latencies, &from->latencies);
  histogram_merge(&into->starts, &from->starts);
}
