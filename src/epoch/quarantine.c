#include "epoch/quarantine.h"

#include "base/atomic.h"
#include "epoch/heap.h"

bool tsl_quarantine_has(const struct tsl_heap *heap, const void *block) {
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) {
    if (heap->store->quarantine[i] == block) return true;
  }
  return false;
}

void *tsl_quarantine_swap(struct tsl_heap *heap, void *block) {
  void **slot = &heap->store->quarantine[heap->store->quarantine_next++ % TSL_QUARANTINE_BLOCKS];
  void *oldest = *slot;
  tsl_store_relaxed(slot, block);
  return oldest;
}

void *tsl_quarantine_take(struct tsl_heap *heap) {
  for (unsigned i = 0; TSL_SECURE && i < TSL_QUARANTINE_BLOCKS; i++) {
    void *block = heap->store->quarantine[i];
    if (block == NULL) continue;
    tsl_store_relaxed(&heap->store->quarantine[i], NULL);
    return block;
  }
  return NULL;
}

size_t tsl_quarantine_blocks(const struct tsl_heap *heap, unsigned class) {
  size_t count = 0;
  for (unsigned i = 0; TSL_SECURE && i < TSL_QUARANTINE_BLOCKS; i++) {
    const void *block = tsl_load_relaxed(&heap->store->quarantine[i]);
    count += block != NULL && tsl_entry_code(tsl_map_lookup(block)) == class * 2;
  }
  return count;
}
