#include "histogram.h"

uint64_t histogram_bucket_value(unsigned bucket) {
  if (bucket < HISTOGRAM_EXACT) {
    return bucket;
  }
  unsigned above = bucket - HISTOGRAM_EXACT;
  unsigned log2 = HISTOGRAM_EXACT_LOG2 + (above >> HISTOGRAM_STEPS_LOG2);
  uint64_t step = above & ((1u << HISTOGRAM_STEPS_LOG2) - 1);
  return ((1ull << HISTOGRAM_STEPS_LOG2) + step) << (log2 - HISTOGRAM_STEPS_LOG2);
}

void histogram_merge(histogram *into, const histogram *from) {
  into->count += from->count;
  into->sum += from->sum;
  into->max = from->max > into->max ? from->max : into->max;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    into->buckets[i] += from->buckets[i];
  }
}

uint64_t histogram_quantile(const histogram *h, double share) {
  uint64_t wanted = (uint64_t)((double)h->count * share);
  uint64_t seen = 0;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    seen += h->buckets[i];
    if (seen > wanted) {
      return histogram_bucket_value(i);
    }
  }
  return h->max;
}
