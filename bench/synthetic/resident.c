#include "synthetic/resident.h"

#include "common/clock.h"
#include "common/memory.h"

uint32_t resident_samples(uint32_t duration_s, uint32_t step_ms) {
  return (uint32_t)(duration_s * 1000ull / step_ms);
}

void resident_open(resident *r, uint32_t duration_s, uint32_t step_ms) {
  *r = (resident){.step_ms = step_ms};
  if (step_ms != 0) {
    r->count = resident_samples(duration_s, step_ms);
    r->bytes = memory_map(r->count * sizeof *r->bytes);
  }
  r->before = memory_resident_bytes();
}

void resident_run(resident *r, uint64_t start_ns) {
  for (uint32_t i = 0; i < r->count; i++) {
    clock_wait_until(start_ns + i * (r->step_ms * 1000000ull));
    uint64_t begin = clock_ns();
    uint64_t bytes = memory_resident_bytes();
    r->sampling_ns += clock_ns() - begin;
    r->bytes[i] = bytes < r->before ? 0 : bytes - r->before;
  }
}

uint64_t resident_peak_bytes(const resident *r) {
  uint64_t peak = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    peak = r->bytes[i] > peak ? r->bytes[i] : peak;
  }
  return peak;
}

static double resident_mean(const resident *r, uint32_t first, uint32_t count) {
  double sum = 0;
  for (uint32_t i = first; i < first + count; i++) {
    sum += (double)r->bytes[i];
  }
  return sum / count;
}

double resident_growth(const resident *r) {
  uint32_t tenth = r->count / 10;
  return resident_mean(r, r->count - tenth, tenth) / resident_mean(r, tenth, tenth);
}
