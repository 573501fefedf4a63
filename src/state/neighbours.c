#include "state/neighbours.h"

#include "state/heap.h"
#include "state/misuse.h"
#include "state/quarantine.h"

// Bits that other threads set do not count: those may be wiping the block.
static bool is_free(const struct tsl_heap *heap, unsigned class, const struct tsl_slab *slab,
                    unsigned index, const void *block) {
  return (slab->free[index / 64] >> index % 64 & 1) != 0 ||
         tsl_stock_has(&heap->store->stocks[class], block) || tsl_quarantine_has(block);
}

static void check(const struct tsl_heap *heap, unsigned class, const struct tsl_slab *slab,
                  unsigned index, bool is_before) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  size_t near = bytes < TSL_CACHE_LINE ? bytes : TSL_CACHE_LINE;
  char *block = (char *)tsl_unit_address(tsl_slab_unit(slab)) + index * bytes;
  char *line = is_before ? block + bytes - near : block;
  if (!is_free(heap, class, slab, index, block)) return;
  if (tsl_likely(tsl_secure_is_zero(line, near))) return;
  tsl_misuse_written(block);
  tsl_secure_wipe(line, near);
}

void tsl_neighbours_check(const struct tsl_heap *heap, unsigned class,
                          struct tsl_position position) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[class];
  unsigned index = (unsigned)position.index;
  unsigned most = sizeclass->bytes < TSL_CACHE_LINE ? TSL_CACHE_LINE / sizeclass->bytes : 1;
  for (unsigned i = 1; i <= most; i++) {
    if (i <= index) check(heap, class, position.slab, index - i, true);
    if (index + i < sizeclass->capacity) check(heap, class, position.slab, index + i, false);
  }
}
