// history: how the epochs of each label ended that had memory of their own. It tells whether the
// next ones share their label's memory. They do once many were small and short, and few of their
// bytes survived; and once the bet is lost that their objects end together: what outlives them pins
// their memory, and is freed one by one. Never after one of them was released
// (docs/decisions/020-epochs-that-share.md, 029-lost-bets-share.md).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "state/label.h"

enum {
  TSL_HISTORY_ENOUGH = 16,      // epochs that ended, before the next ones may share
  TSL_HISTORY_MOST = 64,        // epochs, after which all sums are halved
  TSL_HISTORY_BYTES = 1 << 20,  // small ones hold at most so much at their end, on average;
  TSL_HISTORY_SURVIVING = 4,    // of these bytes at most one in so many survives;
  TSL_HISTORY_LIVED_MS = 1000,  // and they live at most so long, on average
  TSL_HISTORY_LONG = 16,        // small ones that share and lived longer than that: then all is
                                // forgotten, and the next ones have memory of their own
  TSL_HISTORY_PINNED = 16,      // of the bytes that they hold, survivors pin more than one in so
                                // many: the bet is lost,
  TSL_HISTORY_FREED = 64,       // when at least one survivor in so many was freed;
  TSL_HISTORY_FEW = 4,          // so many epochs are enough when survivors pin TSL_HISTORY_BYTES
};

// Sums over the ended epochs of a label that had memory of their own. Their writers do not wait for
// each other.
struct tsl_sums {
  uint32_t ended;           // [remote]
  uint32_t lived_long;      // [remote] of those that shared
  uint32_t released;        // [remote] 1: one of them was
  uint32_t shares;          // [remote] what the sums say of the next one
  uint64_t held_bytes;      // [remote]
  uint64_t pinned_bytes;    // [remote]
  uint64_t survivor_bytes;  // [remote]
  uint64_t lived_ms;        // [remote]
  uint64_t survivors;       // [remote] objects,
  uint64_t freed;           // [remote] of these, freed since; counted up to twice what is needed
};

// By label.
TSL_HIDDEN extern struct tsl_sums tsl_histories[TSL_MOST_LABELS];

// An epoch with memory of its own was closed.
struct tsl_closed {
  size_t held_bytes;
  size_t pinned_bytes;  // of these, in cells and slabs with survivors
  size_t survivor_bytes;
  size_t survivors;  // objects
  uint64_t lived_ms;
};

// Any thread. Of two that come at once, one may not be counted.
TSL_HIDDEN void tsl_history_closed(uint32_t label, const struct tsl_closed *closed);

// Whether at least one survivor in `most` was freed.
TSL_ALWAYS_INLINE bool tsl_history_are_freed(const struct tsl_sums *sums, unsigned most) {
  return tsl_load_relaxed(&sums->freed) * most >= tsl_load_relaxed(&sums->survivors);
}

// A survivor was freed; one of a part that its thread sealed later than the close, and one that was
// kept, count, too, though no close has counted them. Threads that free at once write one word: no
// more of them than twice the number that is needed, so that a close of as many survivors as there
// were before still finds it. Any thread.
TSL_ALWAYS_INLINE void tsl_history_freed(uint32_t label) {
  struct tsl_sums *sums = &tsl_histories[label];
  if (tsl_history_are_freed(sums, TSL_HISTORY_FREED / 2)) return;
  tsl_add_relaxed(&sums->freed, 1);
}

// An epoch that shared was closed. Any thread.
TSL_HIDDEN void tsl_history_shared(uint32_t label, uint64_t lived_ms);

// The program released an epoch, or counts on that of a parent to end what it kept: those of the
// label never share from now on. Whether it is the first. Any thread.
TSL_HIDDEN bool tsl_history_released(uint32_t label);

// Whether the next epoch of the label shares. Any thread.
TSL_HIDDEN bool tsl_history_shares(uint32_t label);

// Whether an epoch of the label was released, or enough with memory of their own have ended since
// all was forgotten last: it is decided by now whether the next one shares. Any thread.
TSL_HIDDEN bool tsl_history_is_known(uint32_t label);

// What is known of a label's epochs that had memory of their own.
struct tsl_history {
  uint32_t ended;  // of late: the sums are halved again and again
  bool released;
  bool shares;
  uint64_t held_bytes;
  uint64_t pinned_bytes;
  uint64_t survivor_bytes;
  uint64_t lived_ms;
};

// Any thread.
TSL_HIDDEN struct tsl_history tsl_history_of(uint32_t label);
