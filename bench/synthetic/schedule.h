// When requests are to start: evenly spaced and fixed beforehand, however long each of them takes.
#ifndef BENCH_SYNTHETIC_SCHEDULE_H
#define BENCH_SYNTHETIC_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct schedule {
  uint64_t start_ns;
  uint64_t end_ns;
  double interval_ns;  // between two requests of a thread; 0: no schedule, each follows the last
  double phase_ns;     // of this thread within the interval
  uint64_t spin_ns;    // before a start: nobody wakes to the microsecond
} schedule;

// How the waiting for a request's start ended.
typedef enum arrival {
  ARRIVAL_ON_TIME,
  ARRIVAL_BUSY,      // the thread was still at work when the request was due
  ARRIVAL_OVERSLEPT  // the thread was woken too late
} arrival;

// Requests that are due before the end.
uint64_t schedule_requests(const schedule *s);

uint64_t schedule_due_ns(const schedule *s, uint64_t request);

// Before the first wait of a thread: its sleeps end as exactly as the system can.
void schedule_enter(void);

// How long one of so many threads may spin; not at all where they outnumber the processors, since
// one would then keep another from its request.
uint64_t schedule_spin_ns(unsigned threads);

arrival schedule_wait(const schedule *s, uint64_t due_ns);

#endif
