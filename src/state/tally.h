// tally: what heaps count of their work, for the statistics. Nothing else reads it.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "slab/sizeclass.h"

// Of one size class in slabs.
struct tsl_tally {
  uint32_t out;       // [owner] blocks out of the slabs, minus `untold`
  uint32_t untold;    // [owner] frees through a full bin that are left until the next report
  uint32_t slabs;     // [owner] open
  uint32_t opened;    // [owner] slabs so far
  uint64_t refills;   // [owner] words of free blocks taken from slabs
  uint64_t refilled;  // [owner] blocks in them
  uint64_t rested;    // [owner] of these, put back without a free: of a bin that shrank, or at rest
  uint64_t sent;      // [owner] home: frees of other homes' blocks, those that wait included
  uint64_t taken;     // [owner] frees by others that were collected
};

// What a heap has told of a class is behind by so much at most.
enum { TSL_TALLY_BEHIND_BYTES = 512 << 10 };

// By class: the most frees through a full bin between two reports. They and a full bin are within
// TSL_TALLY_BEHIND_BYTES (B6).
TSL_HIDDEN extern const uint8_t tsl_tally_most_untold[TSL_BINS];

static inline uint32_t tsl_tally_out(const struct tsl_tally *tally) {
  return tally->out + tally->untold;
}

// The class was reported: `untold` begins anew, and what `tsl_tally_out` returns stays the same.
// Returns the frees through a full bin since the last report.
static inline uint32_t tsl_tally_tell(struct tsl_tally *tally, unsigned class) {
  uint32_t more = tsl_tally_most_untold[class] - tally->untold;
  tally->untold += more;
  tally->out -= more;
  return more;
}

// Sets the count of blocks that are out to 0.
static inline void tsl_tally_forget_out(struct tsl_tally *tally, unsigned class) {
  tally->untold = tsl_tally_most_untold[class];
  tally->out = 0 - tally->untold;
}

static inline struct tsl_tally tsl_tally_new(unsigned class) {
  struct tsl_tally tally = {0};
  tsl_tally_forget_out(&tally, class);
  return tally;
}

// The freed blocks that the thread put back in their slabs because their bin was full. 0 where
// blocks that a fork or a misuse lost make the difference negative.
static inline uint64_t tsl_tally_returned(const struct tsl_tally *tally) {
  uint64_t kept = tally->rested + tsl_tally_out(tally) + tally->taken;
  return tally->refilled < kept ? 0 : tally->refilled - kept;
}

// Where a thread got the units for its slabs, counted in its home alone. [owner]
struct tsl_unit_tally {
  uint64_t kept;    // those that it kept itself
  uint64_t shared;  // those that threads gave to the cache of all
  uint64_t reused;  // free ones of the segments that still have pages
  uint64_t fresh;   // free ones of the segments, in part or all without pages
};

// What a thread did at the ends of epochs, counted in its home alone. [owner]
struct tsl_end_tally {
  uint64_t closes;        // epochs that it closed, those that share included
  uint64_t releases;      // and that it released; not for the parents of these
  uint64_t parts;         // that it sealed or released
  uint64_t pieces;        // cells and slabs in them,
  uint64_t pieces_given;  // and of these, without live blocks: given back at once
  uint64_t held_pages;    // of 4 KiB: of all pieces,
  uint64_t given_pages;   // and of those that were given back
  uint64_t timed_parts;   // parts of at least TSL_TIMED_PIECES,
  uint64_t timed_ns;      // and the time that they took
};

// Two looks at the clock take as long as a cell or two: less than 1 % of so many.
enum { TSL_TIMED_PIECES = 64 };

// The cells of a thread in all its epochs, counted in its home alone.
struct tsl_cell_tally {
  uint64_t taken;           // [owner] cells so far
  uint64_t restarted;       // [owner] empty cells that were cut anew
  uint64_t ended_objects;   // [owner] allocated in cells of parts that it ended
  uint64_t ended_granules;  // [owner] and what they took
};
