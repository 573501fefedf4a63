// sample: which allocations are looked at closely, who made them, and which of their blocks live.
//
// Allocated bytes are a line on which points lie at random, one in `tsl_sample_mean` on average (a
// Poisson process); a block that holds a point is sampled. Gaps between points have no memory, so
// that each bin, each handful of a stock and each cell draws its own next point, and only on slow
// paths; a block of n bytes is sampled with probability 1 - exp(-n / mean).
//
// Where points come faster than option `sample_rate`, they are drawn farther apart, and each stands
// for several.
//
//  P1  a sampled block has a cell to itself, or is a large block: its free comes by a slow path,
//      and no fast path knows of samples
//  P2  a live sample is one row of `samples`, and its number stands with its cell or span; who
//      frees the block gives the row back
//  P3  the statistics file is written and never read here, but for what it is asked (control)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "epoch/heap.h"

enum {
  TSL_MOST_SITES = 1 << 14,
  TSL_MOST_SAMPLES = 1 << 16,
  TSL_SITE_FRAMES = 32,
};

// Bytes from point to point on average; 0: nothing is sampled.
TSL_HIDDEN extern uint64_t tsl_sample_mean;  // [remote]

TSL_ALWAYS_INLINE bool tsl_sample_is_on(void) {
  return tsl_unlikely(tsl_load_relaxed(&tsl_sample_mean) != 0);
}

// From time to time: what the option and the statistics file ask for begins or ends. The first mean
// stays for the process's life, since the counts are weighed by it. Any thread.
TSL_HIDDEN void tsl_sample_follow(void);

// From time to time, while samples are taken: how many points each that is drawn from here on
// stands for. Owner only.
TSL_HIDDEN void tsl_sample_look(struct tsl_heap *home);

// Draws the heap's points anew when what each stands for has changed: all that are still to come
// stand for the same number. After a point that was reached has been used, or it is lost. Owner
// only.
TSL_HIDDEN void tsl_sample_follow_times(struct tsl_heap *heap);

// The same of the points that were drawn for a heap before. Owner only.
TSL_ALWAYS_INLINE uint32_t tsl_sample_times(const struct tsl_heap *heap) {
  return heap->sample_times == 0 ? 1 : heap->sample_times;
}

// Bytes before the next point that is drawn for the heap, when it is among the next `bytes`;
// SIZE_MAX otherwise. Owner only.
TSL_HIDDEN size_t tsl_sample_within(struct tsl_heap *heap, size_t bytes);

// Hot allocations of a class until the one that holds the next point, if it is among the next
// `most`, which is returned otherwise; `sampled_hot` tells which it was. Owner only.
TSL_HIDDEN uint32_t tsl_sample_until(struct tsl_heap *heap, unsigned class, uint32_t most);

// Which block of the next handful holds the next point, from 1 on, goes to `place`; 0: none. The
// first one is sampled here and returned; else NULL. Owner only.
TSL_HIDDEN void *tsl_sample_handful(struct tsl_heap *heap, unsigned class, uint32_t *place);

// A sampled block, which holds a point that was drawn to stand for `times`. NULL, and nothing
// changed, when it cannot be had, or when another one stands for it. Owner only.
TSL_HIDDEN void *tsl_sample_small(struct tsl_heap *heap, unsigned class, uint32_t times);

// Samples a new large block if it holds a point. Owner of `heap`, and of the block.
TSL_HIDDEN void tsl_sample_large(struct tsl_heap *heap, void *block);

// A sampled block has ended, or is elsewhere now. `sample`: what stands with it, not 0. Any thread.
TSL_HIDDEN void tsl_sample_end(uint32_t sample);
TSL_HIDDEN void tsl_sample_move(uint32_t sample, const void *block);

// The child of a fork begins anew.
TSL_HIDDEN void tsl_sample_after_fork(void);
