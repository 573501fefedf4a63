#include "heap/over.h"

#include "base/lock.h"
#include "base/stack.h"
#include "heap/slots.h"
#include "state/change.h"
#include "state/epoch.h"
#include "state/outside.h"

static struct tsl_stack waiting;

static uint32_t *waiting_link(uint32_t slot) { return &tsl_epoch_at(slot)->next_free; }

static bool may_call(void) {
  return tsl_locks_held == 0 && !tsl_change_is_on(tsl_heap_current->home);
}

// The program's code finds the thread in the default epoch. It may give a thread that had none a
// home.
static void call(uint32_t slot) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tslab_epoch id = tsl_epoch_id(slot, tsl_load_relaxed(&epoch->word));
  void (*on_over)(tslab_epoch, void *) = epoch->on_over;
  void *context = epoch->over_context;
  epoch->on_over = NULL;
  tsl_slot_give(slot);
  struct tsl_outside outside = tsl_outside_begin();
  on_over(id, context);
  if (outside.heap != &tsl_home_empty.heap) tsl_outside_end(outside);
}

void tsl_over_tell(uint32_t slot) {
  if (may_call()) return call(slot);
  tsl_stack_push(&waiting, slot, waiting_link);
}

void tsl_over_tell_waiting(void) {
  uint32_t slot;
  while (tsl_unlikely((uint32_t)tsl_load_relaxed(&waiting.head) != 0) && may_call() &&
         (slot = tsl_stack_pop(&waiting, waiting_link)) != 0)
    call(slot);
}
