#include "heap/drained.h"

#include "heap/hold.h"
#include "heap/slabs.h"

// Sealed slabs without blocks whose guard the system did not take away: their epochs wait for them.
static struct tsl_stack guarded;

static uint32_t *guarded_link(uint32_t unit) { return &tsl_slab_at(unit)->ready_next; }

bool tsl_drained_give(struct tsl_slab *slab) {
  if (tsl_slab_close(slab)) {
    tsl_heap_give_slab(slab);
    return true;
  }
  tsl_stack_push(&guarded, (uint32_t)tsl_slab_unit(slab), guarded_link);
  return false;
}

void tsl_drained_try_guarded(void) {
  uint32_t unit = TSL_SECURE ? tsl_stack_pop(&guarded, guarded_link) : 0;
  if (unit == 0) return;
  uint32_t epoch = tsl_span_at(unit)->epoch;
  if (tsl_drained_give(tsl_slab_at(unit))) tsl_epoch_drain(epoch, 1);
}

void tsl_heap_drained(struct tsl_slab *slab) {
  uint32_t epoch = tsl_span_at(tsl_slab_unit(slab))->epoch;
  bool ended = tsl_drained_give(slab);
  if (ended) tsl_epoch_drain(epoch, 1);
  tsl_drained_try_guarded();
}
