// One thread that serves requests: each allocates its objects, writes them, and frees those that
// are due, of its own or of an earlier request.
#ifndef BENCH_SYNTHETIC_SERVER_H
#define BENCH_SYNTHETIC_SERVER_H

#include "common/histogram.h"
#include "synthetic/period.h"
#include "synthetic/schedule.h"

// A request whose objects live.
typedef struct request {
  uint64_t number;
  uint64_t period;
  uint32_t count;
  char **objects;
} request;

typedef struct server_counts {
  uint64_t requests;
  uint64_t objects;
  uint64_t leaked;
  uint64_t held;       // objects that waited for their end when the run was over
  uint64_t busy;       // requests that started late because the thread was at work
  uint64_t overslept;  // and because it was woken late
  uint64_t unserved;   // due before the end, not started by then
  uint64_t lag_least;  // requests that really lay between a request and the end of its objects
  uint64_t lag_most;
} server_counts;

typedef struct server {
  const settings *settings;
  schedule schedule;
  period period;
  uint32_t state;
  request *ring;  // as many as may live at a time
  server_counts counts;
  histogram latencies;  // nanoseconds from the intended start to the end
  histogram starts;     // nanoseconds from the intended start to the start
} server;

void server_open(server *s, const settings *wanted, unsigned index);

// Serves until the end of the schedule, then ends what still lives.
void server_run(server *s);

// Adds the counts, latencies and periods of `from`.
void server_merge(server *into, const server *from);

#endif
