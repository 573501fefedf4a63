#include "heap/slots.h"

#include "memory/growth.h"
#include "state/epoch.h"
#include "state/misuse.h"

// Slots of retired epochs, the warmest on top.
static struct tsl_stack free_slots;

static uint32_t *slot_link(uint32_t slot) { return &tsl_epoch_at(slot)->next_free; }

static uint32_t slot_add(void) {
  uint32_t slot = tsl_region_add_epoch();
  if (tsl_unlikely(slot == TSL_MANY_EPOCHS)) tsl_misuse_many();
  return slot;
}

uint32_t tsl_slot_take_shared(void) {
  uint32_t slot = tsl_stack_pop(&free_slots, slot_link);
  return slot != 0 ? slot : slot_add();
}

void tsl_slot_give_shared(uint32_t slot) { tsl_stack_push(&free_slots, slot, slot_link); }
