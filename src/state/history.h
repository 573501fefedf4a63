// history: how the epochs of each label ended that had memory of their own. It tells whether the
// next ones share their label's memory: when they are many, small and short, few of their bytes
// survive, and none of them was released (docs/decisions/020-epochs-that-share.md).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
  TSL_HISTORY_ENOUGH = 16,      // epochs that ended, before the next ones may share
  TSL_HISTORY_MOST = 64,        // epochs, after which all sums are halved
  TSL_HISTORY_BYTES = 1 << 20,  // to share, they hold at most so much at their end, on average;
  TSL_HISTORY_SURVIVING = 4,    // of these bytes at most one in so many survives;
  TSL_HISTORY_LIVED_MS = 1000,  // and they live at most so long, on average
  TSL_HISTORY_LONG = 16,        // epochs that share and lived longer than that: then all is
                                // forgotten, and the next ones have memory of their own
};

// An epoch with memory of its own was closed.
struct tsl_closed {
  size_t held_bytes;
  size_t survivor_bytes;
  uint64_t lived_ms;
};

// Any thread. Of two that come at once, one may not be counted.
TSL_HIDDEN void tsl_history_closed(uint32_t label, struct tsl_closed closed);

// An epoch that shared was closed. Any thread.
TSL_HIDDEN void tsl_history_shared(uint32_t label, uint64_t lived_ms);

// An epoch was released: those of its label never share from now on. Whether it is the first. Any
// thread.
TSL_HIDDEN bool tsl_history_released(uint32_t label);

// Whether the next epoch of the label shares. Any thread.
TSL_HIDDEN bool tsl_history_shares(uint32_t label);

// What is known of a label's epochs that had memory of their own.
struct tsl_history {
  uint32_t ended;  // of late: the sums are halved again and again
  bool released;
  bool shares;
  uint64_t held_bytes;
  uint64_t survivor_bytes;
  uint64_t lived_ms;
};

// Any thread.
TSL_HIDDEN struct tsl_history tsl_history_of(uint32_t label);
