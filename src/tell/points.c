#include "tell/points.h"

#include "base/options.h"
#include "base/random.h"
#include "state/owner.h"

enum { WINDOW_MS = 50 };  // the least time over which the rate of points is measured
uint64_t tsl_points_mean;

uint64_t *tsl_points_seed(struct tsl_home *home) {
  uint64_t *seed = &home->own->points.seed;
  if (tsl_unlikely(*seed == 0)) *seed = tsl_os_random() | 1;
  return seed;
}

static double mean_bytes(void) { return (double)tsl_load_relaxed(&tsl_points_mean); }

// A point lies that near with probability 1 - exp(-bytes / mean), which is at most bytes / mean:
// most draws end before the logarithm.
static size_t within(struct tsl_home *home, double mean, size_t bytes) {
  double uniform = tsl_random_uniform(tsl_random_next(tsl_points_seed(home)));
  if (uniform * mean >= (double)bytes) return SIZE_MAX;
  double distance = -mean * tsl_log(1 - uniform);
  return distance < (double)bytes ? (size_t)distance : SIZE_MAX;
}

size_t tsl_points_within(struct tsl_heap *heap, size_t bytes) {
  tsl_assert(tsl_owner_is_me(heap));
  return within(heap->home, mean_bytes() * tsl_points_times(heap), bytes);
}

// Which of the next `most` blocks holds the next point, from 1 on; 0: none.
uint32_t tsl_points_next(struct tsl_heap *heap, unsigned class, uint32_t most) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  size_t distance = tsl_points_within(heap, bytes * most);
  return distance == SIZE_MAX ? 0 : (uint32_t)(distance / bytes) + 1;
}

uint32_t tsl_points_until(struct tsl_heap *heap, unsigned class, uint32_t most) {
  tsl_assert(tsl_owner_is_me(heap));
  uint64_t bit = UINT64_C(1) << class % 64;
  uint32_t point = class < TSL_CLASSES ? tsl_points_next(heap, class, most) : 0;
  heap->store->sampled_hot &= ~bit;
  if (point == 0) return most;
  heap->store->sampled_hot |= bit;
  return point;
}

// A handful that was cut has drawn already. The empty store is never written.
uint32_t tsl_points_in_handful(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  uint64_t bit = UINT64_C(1) << class % 64;
  if ((heap->store->sampled_cold & bit) == 0) return tsl_points_next(heap, class, TSL_HANDFUL);
  heap->store->sampled_cold &= ~bit;
  return 1;
}

// The number of points that one sample is to stand for, by the rate of the last window.
static uint32_t times_of(uint32_t points, uint64_t passed_ms) {
  uint64_t wanted = (uint64_t)tsl_option(sample_rate) * passed_ms;
  if (wanted == 0 || points == 0) return 1;
  return (uint32_t)(((uint64_t)points * 1000 + wanted - 1) / wanted);
}

// So many points were reached. What one stands for is known before it is drawn, so that no sum over
// samples is biased.
void tsl_points_count(struct tsl_home *home, uint32_t points) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  struct tsl_points *counted = &home->own->points;
  uint64_t now_ms = tsl_os_now_ms(), passed_ms = now_ms - counted->since_ms;
  if (passed_ms >= WINDOW_MS) {
    counted->times = times_of(counted->count, passed_ms);
    counted->since_ms = now_ms;
    counted->count = 0;
  }
  counted->count += points;
}

// Of the points of large blocks, which hold many, none is left out.
uint32_t tsl_points_of_large(struct tsl_home *home, size_t bytes) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  if (within(home, mean_bytes(), bytes) == SIZE_MAX) return 0;
  tsl_points_count(home, 1);
  uint32_t times = home->own->points.times;
  if (times <= 1) return 1;
  return tsl_random_next(tsl_points_seed(home)) % times == 0 ? times : 0;
}

// With q = exp(-n / (times * mean)) a block of n bytes holds a drawn point with probability 1 - q,
// and is to be sampled with (1 - q^times) / times, as if all points were drawn and one of `times`
// was taken. The quotient is the mean of q^0, q^1 and so on below q^times, where q^i is the chance
// that no point lies in `i` of `times` parts of the block.
bool tsl_points_is_taken(struct tsl_home *home, size_t bytes, uint32_t times) {
  if (times == 1) return true;
  size_t part = bytes * (tsl_random_next(tsl_points_seed(home)) % times) / times;
  return within(home, mean_bytes(), part) == SIZE_MAX;
}
