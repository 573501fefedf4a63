#include "heap/slots.h"

#include "memory/growth.h"
#include "state/change.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "state/misuse.h"

// Slots of retired epochs, the warmest on top.
static struct tsl_stack free_slots;

static uint32_t *slot_link(uint32_t slot) { return &tsl_epoch_at(slot)->next_free; }

static uint32_t slot_add(void) {
  uint32_t slot = tsl_region_add_epoch();
  if (tsl_unlikely(slot == TSL_MANY_EPOCHS)) tsl_misuse_many();
  return slot;
}

uint32_t tsl_slot_take(void) {
  struct tsl_home *home = tsl_heap_current->home;
  if (home != &tsl_home_empty && home->slot_count != 0) return home->own->slots[--home->slot_count];
  uint32_t slot = tsl_stack_pop(&free_slots, slot_link);
  return slot != 0 ? slot : slot_add();
}

void tsl_slot_give(uint32_t slot) {
  struct tsl_home *home = tsl_heap_current->home;
  if (home->slot_count == TSL_HOME_SLOTS) {
    tsl_stack_push(&free_slots, slot, slot_link);
  } else {
    struct tsl_change change = tsl_change_begin(home);
    home->own->slots[home->slot_count++] = slot;
    tsl_change_end(change);
  }
}
