// What the process holds resident while it serves, sampled at fixed times, above what it held
// before.
#ifndef BENCH_SYNTHETIC_RESIDENT_H
#define BENCH_SYNTHETIC_RESIDENT_H

#include <stdint.h>

#define RESIDENT_SAMPLES_LEAST 10u  // a tenth must not be empty

typedef struct resident {
  uint64_t before;
  uint32_t step_ms;
  uint32_t count;
  uint64_t sampling_ns;  // what all samples took
  uint64_t *bytes;
} resident;

uint32_t resident_samples(uint32_t duration_s, uint32_t step_ms);

void resident_open(resident *r, uint32_t duration_s, uint32_t step_ms);

// Takes all samples, the first at `start_ns`.
void resident_run(resident *r, uint64_t start_ns);

uint64_t resident_peak_bytes(const resident *r);

// The mean of the last tenth over the mean of the second one: the first one warms up.
double resident_growth(const resident *r);

#endif
