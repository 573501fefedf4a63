// sample: the sampled blocks: which call stacks allocated them, and which of them still live.
//
//  P1  a sampled block lies in a cell for such blocks, or is a large block: its free comes by a
//      slow path, and no fast path knows of samples
//  P2  a live sample is one row of `samples`, and its number stands with its cell or span, or
//      before the block; who frees the block gives the row back
//  P3  other processes ask for samples by the table `control`; nothing else in the file decides
//      what is sampled
//  P4  the file tells since when all, what is watched, or nothing is sampled: samples that were
//      taken before then are of other blocks
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tell/points.h"

enum { TSL_SAMPLE_HURRY_MS = 60000 };  // after a request to sample what is watched faster

// Starts or stops sampling as the option and the table `control` ask; called from time to time. Any
// thread.
TSL_HIDDEN void tsl_sample_follow(void);

// Whether a thread that samples with `mean` bytes, or does not with 0, has yet to follow. Any
// thread.
TSL_HIDDEN bool tsl_sample_waits(uint64_t mean);

// The same of what is watched (watch.h).
TSL_HIDDEN bool tsl_sample_watch_waits(void);

// Writes the sample of a block, which stands for `times` samples of its class. Returns the sample's
// number, which the caller stores as P2 says; 0 when no row is free. Owner of
// `heap`, and of the block.
TSL_HIDDEN uint32_t tsl_sample_begin(struct tsl_heap *heap, const void *block, size_t bytes,
                                     unsigned class, uint32_t times);

// Bytes that a sample of n bytes stands for, n / (1 - exp(-n / mean)), within 5 %. Any thread.
TSL_HIDDEN uint64_t tsl_sample_weight(size_t bytes);

// Samples a new large block if it holds a point. Owner of `heap`, and of the block.
TSL_HIDDEN void tsl_sample_large(struct tsl_heap *heap, void *block);

// Whether `sample` is the number of this block's sample. Any thread.
TSL_HIDDEN bool tsl_sample_is_of(uint32_t sample, const void *block);

// A sampled block was freed; it was moved to `block`; it has `bytes` now. `sample`: its number, not
// 0. The first has no effect for the number of another block: the program may have written to where
// it stood. Any thread.
TSL_HIDDEN void tsl_sample_end(uint32_t sample, const void *block);
TSL_HIDDEN void tsl_sample_move(uint32_t sample, const void *block);
TSL_HIDDEN void tsl_sample_resize(uint32_t sample, size_t bytes);

// In the child of a fork, which starts without samples.
TSL_HIDDEN void tsl_sample_after_fork(void);
