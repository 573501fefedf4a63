#include "heap/extent.h"

void tsl_extent_grow(uint32_t slot, tsl_unit unit) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_unit first = tsl_load_relaxed(&epoch->extent_first);
  tsl_unit end = tsl_load_relaxed(&epoch->extent_end);
  while (unit < first && !tsl_cas_relaxed(&epoch->extent_first, &first, unit)) continue;
  while (unit >= end && !tsl_cas_relaxed(&epoch->extent_end, &end, unit + 1)) continue;
}

struct tsl_extent tsl_extent_of(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  return (struct tsl_extent){tsl_load_relaxed(&epoch->extent_first),
                             tsl_load_relaxed(&epoch->extent_end)};
}

bool tsl_extent_has(uint32_t slot, size_t unit) {
  struct tsl_extent extent = tsl_extent_of(slot);
  return slot == 0 || (unit >= extent.first && unit < extent.end);
}
