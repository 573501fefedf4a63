#include "memory/unit_cache.h"

#include "base/atomic.h"
#include "base/stack.h"
#include "memory/record.h"
#include "memory/units.h"

static struct tsl_stack units TSL_ON_LINE;
static size_t count TSL_ON_LINE, count_low;  // [remote], relaxed: no invariant depends on them

static uint32_t *unit_link(uint32_t unit) { return &tsl_span_at(unit)->cache_next; }

tsl_unit tsl_unit_cache_take(void) {
  tsl_unit unit = tsl_stack_pop(&units, unit_link);
  if (unit == 0) return 0;
  size_t left = tsl_sub_relaxed(&count, 1) - 1;
  if (left < tsl_load_relaxed(&count_low)) tsl_store_relaxed(&count_low, left);
  return unit;
}

void tsl_unit_cache_give(tsl_unit unit) {
  tsl_add_relaxed(&count, 1);
  tsl_stack_push(&units, unit, unit_link);
}

size_t tsl_unit_cache_drain(size_t most) {
  size_t drained = 0;
  for (tsl_unit unit; drained < most && (unit = tsl_unit_cache_take()) != 0; drained++) {
    tsl_units_give(unit, 1);
  }
  return drained;
}

size_t tsl_unit_cache_units(void) { return tsl_load_relaxed(&count); }

size_t tsl_unit_cache_low(void) {
  return tsl_exchange_relaxed(&count_low, tsl_load_relaxed(&count));
}
