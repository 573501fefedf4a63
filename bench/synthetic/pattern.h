// What requests do with memory: how often they come, how many objects of which sizes they make,
// when these are freed, and which requests share an epoch.
#ifndef BENCH_SYNTHETIC_PATTERN_H
#define BENCH_SYNTHETIC_PATTERN_H

#include <stdint.h>
#include <tslab.h>

#define MIX_PARTS 16u
#define MILLION 1000000u

typedef struct mix_part {
  uint32_t bytes;
  uint32_t weight;
} mix_part;

typedef struct mix {
  unsigned count;
  uint32_t weights;  // of all parts
  mix_part parts[MIX_PARTS];
} mix;

typedef struct pattern {
  const char *name;
  uint32_t request_rate;  // a second, for each thread
  uint32_t objects_least;
  uint32_t objects_most;
  mix sizes;
  uint32_t batch;       // requests that share an epoch; 0: all of a thread's
  uint32_t lag;         // later requests that end before the objects are freed
  uint32_t leaked_ppm;  // objects of a million that are never freed
  enum tslab_purge purge;
} pattern;

// NULL for a name that is no pattern's.
const pattern *pattern_find(const char *name);

uint32_t mix_draw(const mix *m, uint32_t *state);

#endif
