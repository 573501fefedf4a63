// What happened to a process or thread while it was timed, as getrusage tells it.
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include <stdint.h>
#include <sys/resource.h>

typedef struct usage {
  uint64_t faults;    // without input or output
  uint64_t switches;  // that the system forced on it
} usage;

// `who` is RUSAGE_SELF or RUSAGE_THREAD.
static inline usage usage_now(int who) {
  struct rusage now;
  getrusage(who, &now);
  return (usage){(uint64_t)now.ru_minflt, (uint64_t)now.ru_nivcsw};
}

static inline usage usage_since(int who, const usage *before) {
  usage now = usage_now(who);
  return (usage){now.faults - before->faults, now.switches - before->switches};
}

#endif
