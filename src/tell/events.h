// events: when sampled blocks were allocated and freed, by which thread and call stack, in the
// order in which it happened. Only with option sample_events. The table is filled once: what
// happens when it is full is not told.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "state/heap.h"

// A block was sampled, which `site` allocated. The sample's number is the caller's alone.
TSL_HIDDEN void tsl_event_allocated(uint32_t sample, uint32_t site, size_t bytes, uint32_t times);

// The block of a sample, not 0, is about to be freed by the calling thread, whose home it is. The
// stack is taken before anything is changed: the unwinder of a program that is linked statically
// allocates. Does nothing without the option.
TSL_HIDDEN void tsl_event_freed(struct tsl_home *home, uint32_t sample);

// In the child of a fork, whose file has no events yet.
TSL_HIDDEN void tsl_events_after_fork(void);
