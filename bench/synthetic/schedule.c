#include "synthetic/schedule.h"

#include "common/clock.h"

#include <math.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SPIN_NS 200000u

uint64_t schedule_requests(const schedule *s) {
  double length_ns = (double)(s->end_ns - s->start_ns) - s->phase_ns;
  return length_ns <= 0 ? 0 : (uint64_t)ceil(length_ns / s->interval_ns);
}

uint64_t schedule_due_ns(const schedule *s, uint64_t request) {
  return s->start_ns + (uint64_t)(s->phase_ns + (double)request * s->interval_ns);
}

void schedule_enter(void) { prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul); }

uint64_t schedule_spin_ns(unsigned threads) {
  return threads <= sysconf(_SC_NPROCESSORS_ONLN) ? SPIN_NS : 0;
}

arrival schedule_wait(const schedule *s, uint64_t due_ns) {
  uint64_t now = clock_ns();
  if (now > due_ns) {
    return ARRIVAL_BUSY;
  }
  if (due_ns - now > s->spin_ns) {
    clock_wait_until(due_ns - s->spin_ns);
    now = clock_ns();
    if (now > due_ns) {
      return ARRIVAL_OVERSLEPT;
    }
  }
  while (now < due_ns) {
    now = clock_ns();
  }
  return ARRIVAL_ON_TIME;
}
