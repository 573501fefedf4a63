#include "epoch/tally.h"

#include "epoch/heap.h"

const uint8_t tsl_tally_most_untold[TSL_BINS] = {
#define TINY(least, bytes) [TSL_CLASS_OF_##bytes] = 32,
#define MEDIUM(bytes, units) [TSL_CLASS_OF_##bytes] = (bytes) > 16384 ? 1 : 4,
#include "slab/sizeclass.def"
#undef TINY
#undef MEDIUM
    [TSL_CELL_4K... TSL_BINS - 1] = UINT8_MAX,  // nobody is told of cells
};

// The child of a fork ends parts before its thread has a heap: nobody else is there.
static struct tsl_heap *heir(const struct tsl_heap *part) {
  struct tsl_heap *home = tsl_heap_current->home;
  return home == &tsl_heap_empty ? part->home : home;
}

// The home does not seem to have been busy with the class because of what comes in.
static void end_class(struct tsl_store *to, const struct tsl_heap *part, unsigned class) {
  const struct tsl_tally *ended = &part->store->tallies[class];
  if (ended->refills == 0) return;
  struct tsl_tally *tally = &to->tallies[class];
  uint64_t allocations = part->store->allocations[class] - tsl_bin_until(&part->bins[class]);
  to->allocations[class] += allocations;
  to->rest_total[class] += (uint32_t)allocations;
  tally->opened += ended->opened;
  tally->refills += ended->refills;
  tally->refilled += tsl_tally_returned(ended);
}

void tsl_tally_end(const struct tsl_heap *part) {
  struct tsl_store *to = heir(part)->store;
  to->cells.ended_objects += part->cut_objects;
  to->cells.ended_granules += part->cut_granules;
  if (!tsl_heap_has_store(part)) return;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) end_class(to, part, class);
}
