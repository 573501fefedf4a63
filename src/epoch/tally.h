// tally: what heaps count of their work, for the statistics. Nothing else reads it.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "slab/sizeclass.h"

struct tsl_heap;

// Of one size class in slabs.
struct tsl_tally {
  uint32_t out;       // [owner] blocks out of the slabs, less `untold`
  uint32_t untold;    // [owner] frees through a full bin until the class is told of
  uint32_t slabs;     // [owner] open
  uint32_t opened;    // [owner] slabs so far
  uint64_t refills;   // [owner] words of free blocks taken from slabs
  uint64_t refilled;  // [owner] blocks in them
  uint64_t rested;    // [owner] of these, put back without a free: a class or a heap came to rest
  uint64_t sent;      // [owner] home heap: frees of other homes' blocks, those that wait included
  uint64_t taken;     // [owner] frees by others that were collected
};

// Such frees of each class: before what was freed and not told, and what a bin and a handful hold,
// come to more than 512 KiB.
TSL_HIDDEN extern const uint8_t tsl_tally_most_untold[TSL_BINS];

static inline uint32_t tsl_tally_out(const struct tsl_tally *tally) {
  return tally->out + tally->untold;
}

// The class was told of; those frees are counted anew.
static inline void tsl_tally_tell(struct tsl_tally *tally, unsigned class) {
  uint32_t more = tsl_tally_most_untold[class] - tally->untold;
  tally->untold += more;
  tally->out -= more;
}

// No block is out, as far as is known.
static inline void tsl_tally_forget_out(struct tsl_tally *tally, unsigned class) {
  tally->untold = tsl_tally_most_untold[class];
  tally->out = 0 - tally->untold;
}

static inline struct tsl_tally tsl_tally_new(unsigned class) {
  struct tsl_tally tally = {0};
  tsl_tally_forget_out(&tally, class);
  return tally;
}

// Freed blocks that its thread put back in slabs, since there was no room for them at hand. None
// where blocks were lost to a fork or a misuse and more came back than that.
static inline uint64_t tsl_tally_returned(const struct tsl_tally *tally) {
  uint64_t kept = tally->rested + tsl_tally_out(tally) + tally->taken;
  return tally->refilled < kept ? 0 : tally->refilled - kept;
}

// Of a thread in all its epochs: only its home heap counts.
struct tsl_cell_tally {
  uint64_t taken;           // [owner] cells so far
  uint64_t restarted;       // [owner] empty cells that were cut anew
  uint64_t ended_objects;   // [owner] allocated in cells of parts that it ended
  uint64_t ended_granules;  // [owner] and what they took
};

// A part comes to its end: what it counted goes to the home of the thread that ends it, so that no
// count of the process ever falls. Its stocks are empty.
TSL_HIDDEN void tsl_tally_end(const struct tsl_heap *part);
