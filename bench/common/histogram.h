// Log-linear histogram of ticks: exact below 4,096, then 64 buckets a doubling, so within 1.6 %.
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_EXACT_LOG2 12
#define HISTOGRAM_EXACT (1u << HISTOGRAM_EXACT_LOG2)
#define HISTOGRAM_STEPS_LOG2 6
#define HISTOGRAM_BUCKETS (HISTOGRAM_EXACT + ((64 - HISTOGRAM_EXACT_LOG2) << HISTOGRAM_STEPS_LOG2))

typedef struct histogram {
  uint64_t count;
  uint64_t sum;
  uint64_t max;
  uint64_t buckets[HISTOGRAM_BUCKETS];
} histogram;

static inline unsigned histogram_bucket(uint64_t value) {
  if (value < HISTOGRAM_EXACT) {
    return (unsigned)value;
  }
  unsigned log2 = 63u - (unsigned)__builtin_clzll(value);
  unsigned step =
      (unsigned)(value >> (log2 - HISTOGRAM_STEPS_LOG2)) & ((1u << HISTOGRAM_STEPS_LOG2) - 1);
  return HISTOGRAM_EXACT + ((log2 - HISTOGRAM_EXACT_LOG2) << HISTOGRAM_STEPS_LOG2) + step;
}

static inline void histogram_add(histogram *h, uint64_t value) {
  h->count++;
  h->sum += value;
  h->max = value > h->max ? value : h->max;
  h->buckets[histogram_bucket(value)]++;
}

// The least value of a bucket.
uint64_t histogram_bucket_value(unsigned bucket);

void histogram_merge(histogram *into, const histogram *from);

// The least value of the bucket that holds this share of all values.
uint64_t histogram_quantile(const histogram *h, double share);

#endif
