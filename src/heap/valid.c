#include "heap/valid.h"

#include "heap/cells.h"
#include "heap/remote.h"
#include "heap/slabs.h"
#include "state/bin.h"
#include "state/quarantine.h"

// PA1: what is on the ready stack, or was last, is of the heap's life.
static bool ready_valid(const struct tsl_heap *heap) {
  return (uint32_t)(tsl_load_relaxed(&heap->ready) >> 32) == heap->life;
}

bool tsl_heap_valid(const struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    if (!tsl_bin_valid(heap, class) || !tsl_stock_valid(&heap->store->stocks[class], class))
      return false;
  }
  return ready_valid(heap) && tsl_slabs_valid(heap) && tsl_cells_valid(heap) &&
         tsl_quarantine_valid(heap) && (!tsl_heap_is_home(heap) || tsl_remote_valid(heap->home));
}
