// slots: epoch records that no epoch uses. A thread keeps a few at hand.
#pragma once

#include <stdint.h>

#include "state/heap.h"

// The rest of taking a slot where the thread has none at hand, and of giving one where its place
// for them is full.
TSL_HIDDEN uint32_t tsl_slot_take_shared(void);
TSL_HIDDEN void tsl_slot_give_shared(uint32_t slot);

// The slot of a record that no epoch uses; 0 when memory is out. The record is written after the
// slot has left the list, so that the child of a fork finds none there that is half written.
TSL_ALWAYS_INLINE uint32_t tsl_slot_take(void) {
  struct tsl_home *home = tsl_heap_current->home;
  if (tsl_unlikely(home == &tsl_home_empty || home->slot_count == 0)) return tsl_slot_take_shared();
  uint32_t slot = home->own->slots[--home->slot_count];
  tsl_compiler_fence();  // pairs: slots
  return slot;
}

// Takes back the slot of an epoch that has retired. In the child of a fork that comes between the
// two stores nobody uses it.
TSL_ALWAYS_INLINE void tsl_slot_give(uint32_t slot) {
  struct tsl_home *home = tsl_heap_current->home;
  if (tsl_unlikely(home->slot_count == TSL_HOME_SLOTS)) return tsl_slot_give_shared(slot);
  home->own->slots[home->slot_count] = slot;
  tsl_compiler_fence();  // pairs: slots
  home->slot_count++;
}
