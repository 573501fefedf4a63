// points: where samples lie among the allocated bytes.
//
// Allocated bytes are a line on which points lie at random, one in `tsl_points_mean` on average (a
// Poisson process); a block that holds a point is sampled. Gaps between points have no memory, so
// that each bin, each handful of a stock and each cell draws its own next point, and only on slow
// paths; a block of n bytes is sampled with probability 1 - exp(-n / mean).
//
// Where points are reached faster than option `sample_rate` allows, and for what is watched WA6,
// they are drawn farther apart.
// However far apart they were drawn, a sample stands for as many as there would have been with the
// finest mean, so that the mean may change at any time (tsl_points_reached). All functions: owner
// only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "state/heap.h"
#include "tell/watch.h"

enum {
  TSL_HANDFUL = 64,          // blocks of a handful, at most
  TSL_POINTS_FINEST = 4096,  // bytes; with a finer mean samples would be most of the memory
};

// Bytes from point to point on average; 0: nothing is sampled but what is watched (watch.h).
TSL_HIDDEN extern uint64_t tsl_points_mean;  // [remote]

TSL_ALWAYS_INLINE bool tsl_points_are_on(void) {
  return tsl_unlikely((tsl_load_relaxed(&tsl_points_mean) | tsl_load_relaxed(&tsl_watch_bytes)) !=
                      0);
}

// The state of a thread's random numbers.
TSL_HIDDEN uint64_t *tsl_points_seed(struct tsl_home *home);

// Changes with all that decides how far apart the heap's points are to be drawn, but its epoch.
TSL_ALWAYS_INLINE uint32_t tsl_points_version(const struct tsl_heap *heap) {
  return tsl_load_relaxed(&tsl_watch_version) + heap->home->own->points.version;
}

// How far apart the heap's points are to be drawn from now on, in bytes; 0: none is.
TSL_HIDDEN uint64_t tsl_points_apart(const struct tsl_heap *heap);

// Draws the heap's next point. Returns the bytes before it when it lies among the next `bytes`;
// SIZE_MAX otherwise.
TSL_HIDDEN size_t tsl_points_within(struct tsl_heap *heap, size_t bytes);

// Draws the next point among a class's hot allocations. Returns the number of allocations up to the
// one that holds it, and sets the class's bit of `sampled_hot`; or returns `most` and clears the
// bit, when the point lies beyond.
TSL_HIDDEN uint32_t tsl_points_until(struct tsl_heap *heap, unsigned class, uint32_t most);

// Draws a point: the number of the block that holds it, from 1 to `most`; 0: none does.
TSL_HIDDEN uint32_t tsl_points_next(struct tsl_heap *heap, unsigned class, uint32_t most);

// When the last handful of the class was cut before a point, the first block of the next one is to
// be sampled. Forgets that, and returns how far apart points lay; 0: it was not cut.
TSL_HIDDEN uint64_t tsl_points_take_cut(struct tsl_heap *heap, unsigned class);

// Whether blocks of the class that hold a point are sampled; if not, the point is passed, which
// costs a small part of what one does that is reached.
TSL_HIDDEN bool tsl_points_take(struct tsl_heap *heap, unsigned class, uint64_t apart);

// Counts points that were reached, and sets how far apart points are drawn from now on.
TSL_HIDDEN void tsl_points_count(struct tsl_home *home, uint32_t points);

// A block is allocated that holds a point. Counts the point. Returns for how many samples it
// stands: a whole number by chance, whose mean is exact. `apart`: what the heap's `sample_apart`
// was when the point was drawn.
TSL_HIDDEN uint32_t tsl_points_reached(struct tsl_heap *heap, size_t bytes, uint64_t apart);

// Draws for a large block: the number of samples for which it stands; 0: it is none.
TSL_HIDDEN uint32_t tsl_points_of_large(struct tsl_heap *heap, size_t bytes);
