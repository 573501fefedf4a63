#include "clock.h"

#include "histogram.h"

#define CALIBRATION_NS 50000000u
#define FLOOR_SAMPLES 200000

void clock_wait_until(uint64_t ns) {
  struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
  }
}

double clock_ns_per_tick(void) {
  uint64_t start_ns = clock_ns();
  uint64_t start_ticks = ticks_begin();
  uint64_t end_ns = start_ns;
  while (end_ns - start_ns < CALIBRATION_NS) {
    end_ns = clock_ns();
  }
  return (double)(end_ns - start_ns) / (double)(ticks_end() - start_ticks);
}

uint64_t ticks_floor(void) {
  static histogram samples;
  for (int i = 0; i < FLOOR_SAMPLES; i++) {
    uint64_t start = ticks_begin();
    histogram_add(&samples, ticks_end() - start);
  }
  return histogram_quantile(&samples, 0.5);
}
