// points: where samples lie among the allocated bytes.
//
// Allocated bytes are a line on which points lie at random, one in `tsl_points_mean` on average (a
// Poisson process); a block that holds a point is sampled. Gaps between points have no memory, so
// that each bin, each handful of a stock and each cell draws its own next point, and only on slow
// paths; a block of n bytes is sampled with probability 1 - exp(-n / mean).
//
// Where points are reached faster than option `sample_rate` says, they are drawn farther apart, and
// each stands for several. All functions: owner only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "state/heap.h"

enum { TSL_HANDFUL = 64 };  // blocks of a handful, at most

// Bytes from point to point on average; 0: nothing is sampled.
TSL_HIDDEN extern uint64_t tsl_points_mean;  // [remote]

TSL_ALWAYS_INLINE bool tsl_points_are_on(void) {
  return tsl_unlikely(tsl_load_relaxed(&tsl_points_mean) != 0);
}

// The state of a thread's random numbers.
TSL_HIDDEN uint64_t *tsl_points_seed(struct tsl_home *home);

// The number of points that each point of a heap stands for.
TSL_ALWAYS_INLINE uint32_t tsl_points_times(const struct tsl_heap *heap) {
  return heap->sample_times == 0 ? 1 : heap->sample_times;
}

// Draws the heap's next point. Returns the bytes before it when it lies among the next `bytes`;
// SIZE_MAX otherwise.
TSL_HIDDEN size_t tsl_points_within(struct tsl_heap *heap, size_t bytes);

// Draws the next point among a class's hot allocations. Returns the number of allocations up to the
// one that holds it, and sets the class's bit of `sampled_hot`; or returns `most` and clears the
// bit, when the point lies beyond.
TSL_HIDDEN uint32_t tsl_points_until(struct tsl_heap *heap, unsigned class, uint32_t most);

// Draws a point: the number of the block that holds it, from 1 to `most`; 0: none does. The second
// is for a new handful: its first block holds the point when the last handful was cut before it.
TSL_HIDDEN uint32_t tsl_points_next(struct tsl_heap *heap, unsigned class, uint32_t most);
TSL_HIDDEN uint32_t tsl_points_in_handful(struct tsl_heap *heap, unsigned class);

// Counts points that were reached, and sets what the points drawn from now on stand for. That
// number is fixed before a point is drawn, so that no sum over samples is biased.
TSL_HIDDEN void tsl_points_count(struct tsl_home *home, uint32_t points);

// Whether a block that holds a point, which stands for `times`, is to be sampled.
TSL_HIDDEN bool tsl_points_is_taken(struct tsl_home *home, size_t bytes, uint32_t times);

// Draws for a large block: the number of points that its point stands for; 0: it holds none, or is
// passed over.
TSL_HIDDEN uint32_t tsl_points_of_large(struct tsl_home *home, size_t bytes);
