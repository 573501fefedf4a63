// epoch: a declared lifetime. Records lie in a dense array of slots; an id is generation << 24 |
// slot, so that an id of an epoch that ended is never taken for a later one. Slot 0 is the default
// epoch: generation 0, always open.
//
//  E1  the state only moves OPEN -> CLOSED or RELEASED -> FREE, and then to OPEN of the next
//      generation; whoever moves it away from OPEN is the one who ends the epoch
//  E2  undrained == 1 while open + heaps not sealed yet + sealed cells and slabs with blocks out +
//      large blocks + children; whoever brings it to zero retires the epoch
//  E3  held_bytes counts the cells, slabs and large blocks of the epoch and of its descendants; no
//      hard limit on the way to the root is exceeded
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "memory/region.h"
#include "tslab.h"

enum { TSL_EPOCH_SLOT_BITS = 24, TSL_EPOCH_STATE_BITS = 8, TSL_EPOCH_MOST_LEVELS = 64 };

enum tsl_epoch_state { TSL_EPOCH_OPEN, TSL_EPOCH_CLOSED, TSL_EPOCH_RELEASED, TSL_EPOCH_FREE };

// The list of heaps of an epoch that no heap may join any more.
#define TSL_EPOCH_ENDED UINT32_MAX

struct tsl_deferred;

struct tsl_epoch {
  uint64_t word;         // [remote] generation << 8 | state
  uint32_t heaps;        // [remote] its heaps, one a thread; TSL_EPOCH_ENDED once it is closed
  uint32_t undrained;    // [remote]
  uint32_t parent;       // [const] slot
  uint32_t label;        // [const] label number
  uint32_t next_free;    // [remote] link on the stack of free slots
  uint32_t children;     // [remote] slots whose parent this is
  uint8_t first_cell;    // [const] class; TSL_BINS: no cells
  uint8_t largest_cell;  // [const] class
  uint8_t purge;         // [const] enum tslab_purge
  uint8_t soft_told;     // [remote] the callback knows that the soft limit is exceeded
  uint8_t told;          // [remote] the statistics know it (report.c)
  uint8_t level;         // [const] ancestors; below TSL_EPOCH_MOST_LEVELS, since walks recurse
  uint32_t settled;      // [who ends it] the close has looked at all heaps
  uint32_t late;         // [remote] allocations refused because the epoch had ended
  uint64_t opened_ms;    // [const]
  uint64_t closed_ms;    // [who ends it]
  size_t soft_limit;     // [const]
  size_t hard_limit;     // [const]
  tslab_limit_callback *on_limit;  // [const]
  void *limit_context;             // [const]
  size_t held_bytes;               // [remote]
  tsl_unit large;                  // [lock:large] list of its large blocks (tsl_span)
  uint32_t large_blocks;           // [lock:large]
  size_t large_bytes;              // [lock:large]
  struct tsl_deferred *deferred;   // [lock:deferred] the last one first
};

_Static_assert(sizeof(struct tsl_epoch) <= TSL_EPOCH_BYTES, "an epoch fits its place");

TSL_ALWAYS_INLINE struct tsl_epoch *tsl_epoch_at(uint32_t slot) {
  return (struct tsl_epoch *)(tsl_region.epochs + (uintptr_t)slot * TSL_EPOCH_BYTES);
}
TSL_ALWAYS_INLINE uint32_t tsl_epoch_slot(tslab_epoch id) {
  return (uint32_t)id & ((UINT32_C(1) << TSL_EPOCH_SLOT_BITS) - 1);
}
// What `word` is while the epoch with this id is open.
TSL_ALWAYS_INLINE uint64_t tsl_epoch_open_word(tslab_epoch id) {
  return id >> TSL_EPOCH_SLOT_BITS << TSL_EPOCH_STATE_BITS | TSL_EPOCH_OPEN;
}
TSL_ALWAYS_INLINE enum tsl_epoch_state tsl_epoch_state(uint64_t word) {
  return (enum tsl_epoch_state)(word & ((1u << TSL_EPOCH_STATE_BITS) - 1));
}
TSL_ALWAYS_INLINE tslab_epoch tsl_epoch_id(uint32_t slot, uint64_t word) {
  return word >> TSL_EPOCH_STATE_BITS << TSL_EPOCH_SLOT_BITS | slot;
}

// Makes slot 0 the default epoch. Called once, after the region was reserved.
TSL_HIDDEN void tsl_epoch_init(void);

// Opens an epoch; `parent` is open or 0. Returns 0 and the id, or ENOMEM, ECANCELED (the parent has
// ended meanwhile).
TSL_HIDDEN int tsl_epoch_open(uint32_t label, const tslab_epoch_options *options, tslab_epoch *id);

// 0, ESTALE for an id that never was or whose epoch has retired, ECANCELED for one that has ended.
TSL_HIDDEN int tsl_epoch_check(tslab_epoch id);

// The record of an epoch that is not retired; NULL when there is none.
TSL_HIDDEN struct tsl_epoch *tsl_epoch_find(tslab_epoch id);

// Ends the epoch for who comes first: 0; otherwise ESTALE, or ECANCELED when somebody else did.
TSL_HIDDEN int tsl_epoch_end(tslab_epoch id, enum tsl_epoch_state state);

// Moves an epoch from closed to released, and keeps it from retiring: the caller drains it by one.
// False when it has retired or was released already.
TSL_HIDDEN bool tsl_epoch_claim_release(tslab_epoch id);

// Adds one to `undrained`, unless the epoch has retired.
TSL_HIDDEN bool tsl_epoch_hold(uint32_t slot);

// Takes `count` off `undrained`; the last one retires the epoch.
TSL_HIDDEN void tsl_epoch_drain(uint32_t slot, uint32_t count);

TSL_HIDDEN bool tsl_epoch_charge_chain(uint32_t slot, size_t bytes);
TSL_HIDDEN void tsl_epoch_discharge_chain(uint32_t slot, size_t bytes);

// Bytes that the epoch may still hold before a hard limit refuses; a moment's value.
TSL_HIDDEN size_t tsl_epoch_room(uint32_t slot);

// Counts memory that the epoch takes; false, after a callback, when a hard limit refuses it.
TSL_ALWAYS_INLINE bool tsl_epoch_charge(uint32_t slot, size_t bytes) {
  return slot == 0 || tsl_epoch_charge_chain(slot, bytes);
}
TSL_ALWAYS_INLINE void tsl_epoch_discharge(uint32_t slot, size_t bytes) {
  if (slot != 0) tsl_epoch_discharge_chain(slot, bytes);
}
