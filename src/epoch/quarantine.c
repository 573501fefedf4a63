#include "epoch/quarantine.h"

#include "base/atomic.h"
#include "epoch/heap.h"
#include "epoch/misuse.h"

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

bool tsl_quarantine_is_whole(const void *block, size_t bytes) {
  const uint64_t *words = block;
  uint64_t written = 0;
  for (size_t i = 0; i < bytes / sizeof *words; i++) written |= words[i];
  return written == 0;
}

void tsl_quarantine_look(struct tsl_heap *heap) {
  uint32_t last = (heap->store->quarantine_next - 1) % TSL_QUARANTINE_BLOCKS;
  void *block = heap->store->quarantine[last];
  if (block == NULL) return;
  size_t bytes = tsl_sizeclasses[tsl_entry_code(tsl_map_lookup(block)) / 2].bytes;
  if (bytes > TSL_CACHE_LINE) bytes = TSL_CACHE_LINE;
  if (tsl_likely(tsl_quarantine_is_whole(block, bytes))) return;
  tsl_misuse_written(block);
  tsl_secure_wipe(block, bytes);
}
