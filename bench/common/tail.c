#include "tail.h"

#include "clock.h"
#include "histogram.h"
#include "memory.h"
#include "usage.h"

#include <stdlib.h>

#define SLOW_SHARE 0.999

typedef struct call {
  char *block;
  uint64_t ticks;
  usage met;
} call;

static call call_make(size_t bytes) {
  call c;
  usage before = usage_now(RUSAGE_THREAD);
  uint64_t start = ticks_begin();
  c.block = malloc(bytes);
  c.ticks = ticks_end() - start;
  c.met = usage_since(RUSAGE_THREAD, &before);
  memory_demand(c.block);
  memory_touch(c.block, bytes);
  return c;
}

static void call_count(tail *t, const call *c, uint64_t slow_ticks) {
  t->faults += c->met.faults;
  if (c->ticks < slow_ticks) {
    return;
  }
  t->slow++;
  if (c->met.faults != 0) {
    t->faulted++;
  } else if (c->met.switches != 0) {
    t->switched++;
  } else {
    t->neither++;
  }
}

void tail_run(tail *t, uint64_t count, size_t bytes) {
  call *calls = memory_map(count * sizeof *calls);
  histogram *ticks = memory_map(sizeof *ticks);
  for (uint64_t i = 0; i < count; i++) {
    calls[i] = call_make(bytes);
    histogram_add(ticks, calls[i].ticks);
  }
  uint64_t slow_ticks = histogram_quantile(ticks, SLOW_SHARE);
  for (uint64_t i = 0; i < count; i++) {
    call_count(t, &calls[i], slow_ticks);
    free(calls[i].block);
  }
}

const char *tail_cause(const tail *t) {
  if (t->faulted >= t->switched && t->faulted >= t->neither) {
    return "page faults inside malloc";
  }
  return t->switched >= t->neither
             ? "switches to another thread"
             : "neither page faults nor switches: malloc's own work, or the machine's";
}
