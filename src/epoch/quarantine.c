#include "epoch/quarantine.h"

#include <string.h>

#include "base/atomic.h"
#include "epoch/heap.h"
#include "epoch/misuse.h"
#include "slab/canary.h"

static unsigned class_of(const void *block) { return tsl_entry_code(tsl_map_lookup(block)) / 2; }

bool tsl_quarantine_has(const void *block) {
  return TSL_SECURE && tsl_load_relaxed(tsl_granule_at((uintptr_t)block)) == TSL_CANARY_WAITS;
}

static void mark(const void *block, uint8_t byte) {
  tsl_store_relaxed(tsl_granule_at((uintptr_t)block), byte);
}

static void count(struct tsl_heap *heap, unsigned class, int change) {
  uint8_t *blocks = &heap->store->quarantined[class];
  tsl_store_relaxed(blocks, (uint8_t)(*blocks + change));
}

static void leave(struct tsl_heap *heap, const void *block) {
  count(heap, class_of(block), -1);
  mark(block, 0);
}

void *tsl_quarantine_swap(struct tsl_heap *heap, unsigned class, void *block) {
  void **slot = &heap->store->quarantine[heap->store->quarantine_next++ % TSL_QUARANTINE_BLOCKS];
  void *oldest = *slot;
  if (oldest != NULL) leave(heap, oldest);
  mark(block, TSL_CANARY_WAITS);
  *slot = block;
  count(heap, class, 1);
  return oldest;
}

void *tsl_quarantine_take(struct tsl_heap *heap) {
  for (unsigned i = 0; TSL_SECURE && i < TSL_QUARANTINE_BLOCKS; i++) {
    void *block = heap->store->quarantine[i];
    if (block == NULL) continue;
    heap->store->quarantine[i] = NULL;
    leave(heap, block);
    return block;
  }
  return NULL;
}

size_t tsl_quarantine_blocks(const struct tsl_heap *heap, unsigned class) {
  return TSL_SECURE ? tsl_load_relaxed(&heap->store->quarantined[class]) : 0;
}

void tsl_quarantine_recount(struct tsl_heap *heap) {
  if (!TSL_SECURE) return;
  memset(heap->store->quarantined, 0, sizeof heap->store->quarantined);
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) {
    const void *block = heap->store->quarantine[i];
    if (block == NULL) continue;
    count(heap, class_of(block), 1);
    mark(block, TSL_CANARY_WAITS);
  }
}

void tsl_quarantine_check(void *block, size_t bytes) {
  if (tsl_likely(tsl_secure_is_zero(block, bytes))) return;
  tsl_misuse_written(block);
  tsl_secure_wipe(block, bytes);
}

void tsl_quarantine_look(struct tsl_heap *heap) {
  uint32_t last = (heap->store->quarantine_next - 1) % TSL_QUARANTINE_BLOCKS;
  void *block = heap->store->quarantine[last];
  if (block == NULL) return;
  size_t bytes = tsl_sizeclasses[class_of(block)].bytes;
  if (bytes > TSL_CACHE_LINE) bytes = TSL_CACHE_LINE;
  tsl_quarantine_check(block, bytes);
}
