#include "heap/total.h"

enum { OPEN_AND_ONE_PART = 2 };  // E2

struct tsl_total tsl_total_of(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  return (struct tsl_total){tsl_load_relaxed(&epoch->total_objects),
                            tsl_load_relaxed(&epoch->total_bytes)};
}

void tsl_total_add(uint32_t slot, struct tsl_total more) {
  struct tsl_epoch *epoch = tsl_epoch_at(slot);
  tsl_add_relaxed(&epoch->total_objects, more.objects);
  tsl_add_relaxed(&epoch->total_bytes, more.bytes);
}

// Where the epoch has no other part, nobody else adds: most epochs end so.
TSL_ALWAYS_INLINE void end_part(const struct tsl_heap *part, struct tsl_total more) {
  struct tsl_epoch *epoch = tsl_epoch_at(part->epoch);
  if (tsl_load_relaxed(&epoch->undrained) > OPEN_AND_ONE_PART)
    return tsl_total_add(part->epoch, more);
  tsl_count(&epoch->total_objects, more.objects);
  tsl_count(&epoch->total_bytes, more.bytes);
}

TSL_NOINLINE static void end_part_with_store(const struct tsl_heap *part) {
  end_part(part, tsl_total_of_part(part));
}

void tsl_total_end_part(const struct tsl_heap *part) {
  if (tsl_heap_has_store(part)) return end_part_with_store(part);
  end_part(part, tsl_total_of_cells(part));
}
