// watch: where samples are taken although nobody asked, so that a leak is named with its call stack
// by default: in epochs of a label whose objects outlived them, of the classes of these objects
// alone. The more samples of a label live, each of which may take a page, the fewer are taken:
// the distance between them doubles with every TSL_WATCH_MANY. A process that was asked to sample
// watches nothing. Read docs/decisions/032-watched-labels.md first.
//
//  WA1  classes of which objects outlived an epoch of the label are sampled in its epochs
//  WA2  of other classes nothing is: a point in a block of them is passed
//  WA3  in an epoch with a limit, its own or an ancestor's, nothing is
//  WA4  the distance between samples of a label doubles with every TSL_WATCH_MANY that live, and is
//       halved again as they end
//  WA5  whatever changes the distance changes the version, by which heaps know that they must draw
//       their points anew
//  WA6  of what is watched a thread takes a 25th of the samples a second that option `sample_rate`
//       allows, about, and four times as many as it allows for a minute after a request to hurry
//       (points.c)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "state/heap.h"

enum {
  TSL_WATCH_MANY = 64,
  TSL_WATCH_LOOKS = 8,  // at a part of a shared epoch; what lives at all of them is not in passing
};

// Bytes from point to point (points.h) where no sample lives; 0: nothing is watched.
TSL_HIDDEN extern uint64_t tsl_watch_bytes;  // [remote]

// Until then somebody waits to hear who allocates what is watched (WA6).
TSL_HIDDEN extern uint64_t tsl_watch_hurries_until_ms;  // [remote]

// Changes with all that is told here.
TSL_HIDDEN extern uint32_t tsl_watch_version;  // [remote]

// What decides how far apart points are has changed: an epoch's limits, or what stands here. A heap
// may see this before it sees the change; then it follows with the next one. Any thread.
TSL_HIDDEN void tsl_watch_renew(void);

// The epoch, which is held, is host to a guest. Any thread.
TSL_HIDDEN void tsl_watch_take_in(uint32_t slot);

// Objects of the class, or large ones with TSL_CLASSES, outlived an epoch of the label. Any thread.
TSL_HIDDEN void tsl_watch_add(uint32_t label, unsigned class);

// Whether there is a label that can be watched. Any thread.
TSL_HIDDEN bool tsl_watch_waits(void);

// Looks at what lives in a part whose thread leaves it, if it is of a shared epoch: no close counts
// that. Owner of the part.
TSL_HIDDEN void tsl_watch_look(struct tsl_part *part);

// Bytes from point to point among what the heap allocates now; 0: it is not watched. Any thread.
TSL_HIDDEN uint64_t tsl_watch_mean(const struct tsl_heap *heap);

// Whether blocks of the class are sampled where the heap is watched. Any thread.
TSL_HIDDEN bool tsl_watch_has(const struct tsl_heap *heap, unsigned class);

// A sample of what the heap allocates has the row `row` of samples from now on. Owner of the heap,
// and of the row.
TSL_HIDDEN void tsl_watch_begin(const struct tsl_heap *heap, uint32_t row);

// The row's block was freed. Owner of the row.
TSL_HIDDEN void tsl_watch_end(uint32_t row);

// In the child of a fork, in which no sample lives.
TSL_HIDDEN void tsl_watch_after_fork(void);
