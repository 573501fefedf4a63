// epoch: a declared lifetime. Records lie in a dense array of slots; an id is generation << 24 |
// slot, so that an id of an epoch that ended is never taken for a later one. Slot 0 is the default
// epoch: generation 0, always open.
//
//  E1  the state only moves OPEN -> CLOSED or RELEASED -> FREE, and then to OPEN of the next
//      generation; whoever moves it away from OPEN is the one who ends the epoch, or resets it and
//      then moves it from RESETTING back to OPEN
//  E2  `undrained` is a sum: 1 while the epoch is open, and 1 for each heap that is not sealed, for
//      each sealed cell or slab with blocks out, for each large block, for each child and for
//      whoever holds the epoch (hold.h). Whoever brings it to zero retires the epoch
//  E3  held_bytes counts the cells, slabs and large blocks of the epoch and of its descendants; no
//      charge exceeds a hard limit on the way to the root
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "memory/region.h"
#include "tslab.h"

enum { TSL_EPOCH_SLOT_BITS = 24, TSL_EPOCH_STATE_BITS = 8, TSL_EPOCH_MOST_LEVELS = 64 };

enum tsl_epoch_state {
  TSL_EPOCH_OPEN,
  TSL_EPOCH_CLOSED,
  TSL_EPOCH_RELEASED,
  TSL_EPOCH_FREE,
  TSL_EPOCH_RESETTING
};

// `heaps` of an epoch that has ended: no heap may join its list.
#define TSL_EPOCH_ENDED UINT32_MAX

// Whether `heaps`, or a number found on that list, is a heap's.
TSL_ALWAYS_INLINE bool tsl_epoch_names_heap(uint32_t number) {
  return number - 1 < TSL_EPOCH_ENDED - 1;
}

struct tsl_deferred;

// Of the large blocks of all epochs. Defined by epoch/large_list.c.
TSL_HIDDEN extern struct tsl_lock tsl_large_list_lock;

// Option `release` is poison. Set before the first epoch opens. Defined by epoch/poison.c.
TSL_HIDDEN extern bool tsl_epochs_wait;

struct tsl_epoch {
  uint64_t word;         // [remote] generation << 8 | state
  uint32_t heaps;        // [remote] its heaps, one a thread; TSL_EPOCH_ENDED once it is closed, and
                         // for one that shares
  uint32_t undrained;    // [remote]
  uint32_t parent;       // [const] slot
  uint32_t place;        // [const] slot of the epoch whose list its heaps are on (place.h)
  uint32_t label;        // [const] label number
  uint32_t next_free;    // [remote] link on the stack of free slots
  uint32_t children;     // [remote] slots whose parent this is
  uint32_t unsealed;     // [remote] heaps that its end found in use, minus those of them that their
                         // threads have sealed since
  uint8_t first_cell;    // [const] class; TSL_BINS: no cells
  uint8_t largest_cell;  // [const] class
  uint8_t purge;         // [const] enum tslab_purge
  uint8_t soft_told;     // [remote] the callback knows that the soft limit is exceeded
  uint8_t told;          // [remote] the statistics know it (epochs.c)
  uint8_t is_shared;     // [const] the shared one of its label, which never ends
  uint8_t level;         // [const] ancestors; below TSL_EPOCH_MOST_LEVELS, since walks recurse
  uint8_t has_guests;    // [remote] it is host to some, or was
  uint8_t settled;       // [who ends it] the close has looked at all heaps
  uint8_t is_usual;      // [remote] it has memory of its own, and no options but a parent
  uint32_t late;         // [remote] allocations refused because the epoch had ended
  uint32_t resets;       // [who resets it, read by any] of all epochs that had this slot
  uint32_t host;         // [const] of a guest: slot of the ancestor in whose memory it lies; or 0
  uint64_t keeps;        // [remote] generation of the epoch in which a block was kept last, plus 1
  uint64_t opened_ms;    // [const, read by any]
  uint64_t closed_ms;    // [who ends it]
  size_t soft_limit;     // [remote] the program may change it
  size_t hard_limit;     // [remote]
  tslab_limit_callback *on_limit;        // [const]
  void (*on_over)(tslab_epoch, void *);  // [who holds it, then who retires it] NULL: none
  size_t large_bytes TSL_GUARDED_BY(tsl_large_list_lock);  // [the same as large, read by any]
  size_t held_bytes;                                       // [remote]
  size_t peak_bytes;                                       // [remote] the most that it held
  uint64_t total_objects;                                  // [remote] allocated so far (total.h)
  uint64_t total_bytes;                                    // [remote]
  struct tsl_deferred *deferred;  // [remote] the last one first (deferred.h)
  void *user;                     // [remote] the program's
  tsl_unit extent_first;          // [remote] where its memory lies (extent.h)
  tsl_unit extent_end;            // [remote]
  // List of its large blocks (tsl_span), and their number.
  tsl_unit large TSL_GUARDED_BY(tsl_large_list_lock);         // [lock:large, then who retires it]
  uint32_t large_blocks TSL_GUARDED_BY(tsl_large_list_lock);  // [the same, read by any]
  // Last, because few epochs have them: a name touches only the first three lines of its record.
  void *limit_context;  // [const]
  void *over_context;   // [the same as on_over]
};

_Static_assert(sizeof(struct tsl_epoch) <= TSL_EPOCH_BYTES, "an epoch fits its place");

TSL_ALWAYS_INLINE struct tsl_epoch *tsl_epoch_at(uint32_t slot) {
  return (struct tsl_epoch *)(tsl_region.epochs + (uintptr_t)slot * TSL_EPOCH_BYTES);
}
TSL_ALWAYS_INLINE uint32_t tsl_epoch_slot(tslab_epoch id) {
  return (uint32_t)id & ((UINT32_C(1) << TSL_EPOCH_SLOT_BITS) - 1);
}
// PL1: the slot of the epoch in which the blocks of this one lie; those of a guest, as long as its
// host is open.
TSL_ALWAYS_INLINE uint32_t tsl_epoch_place(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint32_t host = tsl_load_relaxed(&epoch->host);
  return host != 0 ? host : tsl_load_relaxed(&epoch->place);
}
// PL2: whether it is the shared one of its label.
TSL_ALWAYS_INLINE bool tsl_epoch_is_shared(const struct tsl_epoch *epoch) {
  return tsl_load_relaxed(&epoch->is_shared) != 0;
}
// PL3: the slot of the epoch that can be host to guests of this one; 0: none can.
TSL_ALWAYS_INLINE uint32_t tsl_epoch_host_below(uint32_t slot) {
  uint32_t place = tsl_epoch_place(slot);
  return tsl_epoch_is_shared(tsl_epoch_at(place)) ? 0 : place;
}
// The epoch is host to a guest from now on.
TSL_ALWAYS_INLINE void tsl_epoch_take_in(uint32_t slot) {
  tsl_store_relaxed(&tsl_epoch_at(slot)->has_guests, 1);
}
// What `word` is while the epoch with this id is open.
TSL_ALWAYS_INLINE uint64_t tsl_epoch_open_word(tslab_epoch id) {
  return id >> TSL_EPOCH_SLOT_BITS << TSL_EPOCH_STATE_BITS | TSL_EPOCH_OPEN;
}
TSL_ALWAYS_INLINE enum tsl_epoch_state tsl_epoch_state(uint64_t word) {
  return (enum tsl_epoch_state)(word & ((1u << TSL_EPOCH_STATE_BITS) - 1));
}
// Whether a block of it was kept (kept.h).
TSL_ALWAYS_INLINE bool tsl_epoch_keeps(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint64_t word = tsl_load_relaxed(&epoch->word);
  return tsl_load_acquire(&epoch->keeps) == (word >> TSL_EPOCH_STATE_BITS) + 1;  // pairs: keeps
}
// Whether it was released, and its memory waits (poison.h).
TSL_ALWAYS_INLINE bool tsl_epoch_waits(uint32_t slot) {
  if (tsl_likely(!tsl_epochs_wait) || slot == 0) return false;
  return tsl_epoch_state(tsl_load_relaxed(&tsl_epoch_at(slot)->word)) == TSL_EPOCH_RELEASED;
}
// E1 and E2, as far as they can be checked while other threads use the epoch. A thread that holds
//    it.
static inline bool tsl_epoch_valid(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  uint32_t heaps = tsl_load_acquire(&epoch->heaps);  // pairs: epoch-heaps
  enum tsl_epoch_state state = tsl_epoch_state(tsl_load_relaxed(&epoch->word));
  if (slot == 0) return state == TSL_EPOCH_OPEN;
  bool takes_none = heaps == TSL_EPOCH_ENDED;
  if (state == TSL_EPOCH_FREE) return false;
  if (state == TSL_EPOCH_OPEN && takes_none != (tsl_epoch_place(slot) != slot)) return false;
  return tsl_load_relaxed(&epoch->undrained) != 0;
}

TSL_ALWAYS_INLINE tslab_epoch tsl_epoch_id(uint32_t slot, uint64_t word) {
  return word >> TSL_EPOCH_STATE_BITS << TSL_EPOCH_SLOT_BITS | slot;
}
