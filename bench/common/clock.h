// Two clocks: nanoseconds for batches, the time-stamp counter for single operations.
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Nothing before the call may still be running when the counter is read, and nothing after it may
// have started.
static inline uint64_t ticks_begin(void) {
#if defined(__x86_64__)
  _mm_lfence();
  uint64_t ticks = __rdtsc();
  _mm_lfence();
#else
  uint64_t ticks;
  __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
#endif
  return ticks;
}

static inline uint64_t ticks_end(void) {
#if defined(__x86_64__)
  unsigned processor;
  uint64_t ticks = __rdtscp(&processor);
  _mm_lfence();
#else
  uint64_t ticks;
  __asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(ticks)::"memory");
#endif
  return ticks;
}

// Sleeps until clock_ns() is there.
void clock_wait_until(uint64_t ns);

double clock_ns_per_tick(void);

// The median of ticks_end() - ticks_begin() around nothing. Figures below three times this say
// little.
uint64_t ticks_floor(void);

#endif
