// seal: the end of a part whose epoch has ended. Its cells and slabs live on without it until their
// last block is freed: every free after the seal is a remote one and counts down.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "state/heap.h"

// What was still in use when something ended.
struct tsl_survivors {
  size_t objects;
  size_t bytes;  // usable
  size_t pages;  // of 4 KiB, that the cells, slabs and large blocks of these objects keep
};

// True for the one caller that may seal the part: once a life, and only while no scope is open in
// it.
TSL_HIDDEN bool tsl_part_claim_seal(struct tsl_part *part);

// Seals a part that was claimed and gives it back to its home, where it may stay warm (warm.h).
// Drains the epoch by the part, and counts each cell and slab with live blocks in `undrained`; all
// of them, when the epoch waits (poison.h).
TSL_HIDDEN void tsl_part_seal(struct tsl_part *part, struct tsl_survivors *survivors);

// The same, and every block in it ends but those that were kept (spare.h).
TSL_HIDDEN void tsl_part_release(struct tsl_part *part);

// Ends every block in a part of an epoch that is being reset, but those that were kept. The calling
// thread's own part keeps memory for its next blocks, unless all of it moves to a `remnant`, a slot
// (reset.c); 0: none. Nobody else is inside.
TSL_HIDDEN void tsl_part_reset(struct tsl_part *part, uint32_t remnant);
