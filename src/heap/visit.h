// visit: the time from a free by another thread in a home's slab until the owner collects there.
// Meanwhile the slab's map entry has the bit TSL_CODE_VISITED, where its blocks are at most
// TSL_TINY_LIMIT bytes, and the owner compares its own frees in the slab with what others freed, to
// find blocks that were freed twice.
//
// A comparison reads words that the other threads write, and delays both sides. So after
// TSL_VISIT_CHECKS comparisons that found nothing a heap pauses for TSL_VISIT_PAUSE ticks. In a
// pause other threads do not mark its slabs, and it removes the marks that it meets.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "slab/slab.h"
#include "state/heap.h"

enum { TSL_VISIT_CHECKS = 64, TSL_VISIT_PAUSE = 16 };

// Marks the slab, unless its heap pauses or its blocks are larger. The thread that is about to push
// it on its heap's ready stack.
TSL_HIDDEN void tsl_visit_begin(uint32_t owner, unsigned class, const struct tsl_slab *slab);

// The rest is the owner's.

// Whether the block is free in its slab, or waits in the gather of the thread that gathered from
// the slab last. Never true of a live one.
TSL_HIDDEN bool tsl_visit_is_free(uint32_t owner, unsigned class, struct tsl_position position,
                                  const void *block);

// Takes the mark off.
TSL_HIDDEN void tsl_visit_end(const struct tsl_slab *slab);

// The same for a block of a home, asked as the block is freed. False of any in a pause.
TSL_HIDDEN bool tsl_visit_has(struct tsl_home *home, unsigned class, struct tsl_position position,
                              const void *block);

// Counts a tick of the pause, and ends the pause after the last.
TSL_HIDDEN void tsl_visit_tick(struct tsl_home *home);
