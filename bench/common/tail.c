#include "tail.h"

#include "clock.h"
#include "counters.h"
#include "histogram.h"
#include "memory.h"
#include "usage.h"

#include <stdlib.h>

#define SLOW_SHARE 0.999

typedef struct call {
  char *block;
  uint64_t ticks;
  usage met;
  bool refilled;
  bool opened_slab;
} call;

typedef struct teller {
  counters counters;
  uint64_t refills;
  uint64_t opened;
} teller;

static bool sum_moves(const teller *t, counter which, uint64_t *sum) {
  uint64_t before = *sum;
  *sum = counters_sum(&t->counters, which);
  return *sum != before;
}

// A refill tells what it counts at once.
static void call_ask(call *c, teller *t) {
  c->refilled = counters_are_known(&t->counters) && sum_moves(t, COUNTER_REFILLS, &t->refills);
  c->opened_slab = c->refilled && sum_moves(t, COUNTER_OPENED, &t->opened);
}

static call call_make(size_t bytes) {
  call c = {0};
  usage before = usage_now(RUSAGE_THREAD);
  uint64_t start = ticks_begin();
  c.block = malloc(bytes);
  c.ticks = ticks_end() - start;
  c.met = usage_since(RUSAGE_THREAD, &before);
  memory_demand(c.block);
  memory_touch(c.block, bytes);
  return c;
}

static uint64_t *tail_event(tail *t, const call *c) {
  if (c->met.faults != 0) {
    return &t->faulted;
  }
  if (c->met.switches != 0) {
    return &t->switched;
  }
  if (c->opened_slab) {
    return &t->opened_slab;
  }
  return c->refilled ? &t->refilled : &t->others;
}

static void call_count(tail *t, const call *c, uint64_t slow_ticks) {
  t->faults += c->met.faults;
  t->refills += c->refilled;
  t->opened += c->opened_slab;
  if (c->ticks >= slow_ticks) {
    t->slow++;
    *tail_event(t, c) += 1;
  }
}

static teller teller_open(void) {
  counters_demand();
  teller t = {.counters = counters_open()};
  t.refills = counters_sum(&t.counters, COUNTER_REFILLS);
  t.opened = counters_sum(&t.counters, COUNTER_OPENED);
  return t;
}

static void calls_make(call *calls, uint64_t count, size_t bytes, teller *told) {
  for (uint64_t i = 0; i < count; i++) {
    calls[i] = call_make(bytes);
    call_ask(&calls[i], told);
  }
}

static uint64_t slow_ticks_of(const call *calls, uint64_t count) {
  histogram *ticks = memory_map(sizeof *ticks);
  for (uint64_t i = 0; i < count; i++) {
    histogram_add(ticks, calls[i].ticks);
  }
  return histogram_quantile(ticks, SLOW_SHARE);
}

void tail_run(tail *t, uint64_t count, size_t bytes) {
  call *calls = memory_map(count * sizeof *calls);
  teller told = teller_open();
  uint64_t slow_paths = counters_slow_paths(&told.counters);
  uint64_t returned = counters_sum(&told.counters, COUNTER_RETURNED);
  calls_make(calls, count, bytes, &told);
  uint64_t slow_ticks = slow_ticks_of(calls, count);
  for (uint64_t i = 0; i < count; i++) {
    call_count(t, &calls[i], slow_ticks);
    free(calls[i].block);
  }
  t->is_told = counters_are_known(&told.counters);
  t->slow_paths = counters_slow_paths(&told.counters) - slow_paths;
  t->returned = counters_sum(&told.counters, COUNTER_RETURNED) - returned;
}

typedef struct event {
  uint64_t calls;
  const char *text;
} event;

const char *tail_cause(const tail *t) {
  const event events[] = {
      {t->faulted, "page faults inside malloc"},
      {t->switched, "switches to another thread"},
      {t->opened_slab, "malloc opened a slab"},
      {t->refilled, "malloc filled its empty bin from a slab"},
      {t->others, t->is_told ? "the machine: neither page faults, switches nor slow paths"
                             : "neither page faults nor switches: malloc's own work, or the "
                               "machine's"},
  };
  const event *most = events;
  for (unsigned i = 1; i < sizeof events / sizeof events[0]; i++) {
    most = events[i].calls > most->calls ? &events[i] : most;
  }
  return most->text;
}
