#include "state/quarantine.h"

#include <string.h>

#include "slab/canary.h"
#include "state/heap.h"
#include "state/misuse.h"

bool tsl_quarantine_has(const void *block) {
  return TSL_SECURE && tsl_load_relaxed(tsl_granule_at((uintptr_t)block)) == TSL_CANARY_WAITS;
}

// A block that waits is out of its slab like a live one: only the mark tells a second free of it.
static void quarantine_mark(const void *block, uint8_t byte) {
  tsl_store_relaxed(tsl_granule_at((uintptr_t)block), byte);
}

static void quarantine_count(struct tsl_heap *heap, unsigned class, int change) {
  uint8_t *blocks = &heap->store->quarantined[class];
  tsl_store_relaxed(blocks, (uint8_t)(*blocks + change));
}

static void quarantine_leave(struct tsl_heap *heap, const void *block) {
  quarantine_count(heap, tsl_class_around(block), -1);
  quarantine_mark(block, 0);
}

void *tsl_quarantine_swap(struct tsl_heap *heap, unsigned class, void *block) {
  void **slot = &heap->store->quarantine[heap->store->quarantine_next++ % TSL_QUARANTINE_BLOCKS];
  void *oldest = *slot;
  if (oldest != NULL) quarantine_leave(heap, oldest);
  quarantine_mark(block, TSL_CANARY_WAITS);
  *slot = block;
  quarantine_count(heap, class, 1);
  return oldest;
}

void *tsl_quarantine_take(struct tsl_heap *heap) {
  for (unsigned i = 0; TSL_SECURE && i < TSL_QUARANTINE_BLOCKS; i++) {
    void *block = heap->store->quarantine[i];
    if (block == NULL) continue;
    heap->store->quarantine[i] = NULL;
    quarantine_leave(heap, block);
    return block;
  }
  return NULL;
}

void tsl_quarantine_recount(struct tsl_heap *heap) {
  if (!TSL_SECURE) return;
  memset(heap->store->quarantined, 0, sizeof heap->store->quarantined);
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) {
    const void *block = heap->store->quarantine[i];
    if (block == NULL) continue;
    quarantine_count(heap, tsl_class_around(block), 1);
    quarantine_mark(block, TSL_CANARY_WAITS);
  }
}

bool tsl_quarantine_valid(const struct tsl_heap *heap) {
  uint8_t counts[TSL_BINS] = {0};
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) {
    const void *block = heap->store->quarantine[i];
    if (block == NULL) continue;
    if (!tsl_quarantine_has(block)) return false;
    counts[tsl_class_around(block)]++;
  }
  return memcmp(counts, heap->store->quarantined, sizeof counts) == 0;
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
  size_t bytes = tsl_sizeclasses[tsl_class_around(block)].bytes;
  if (bytes > TSL_CACHE_LINE) bytes = TSL_CACHE_LINE;
  tsl_quarantine_check(block, bytes);
}
