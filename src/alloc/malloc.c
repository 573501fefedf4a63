// malloc: the slow halves of malloc and free.
#include "alloc/alloc.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/fast.h"
#include "alloc/helper.h"
#include "alloc/thread.h"
#include "base/check.h"
#include "memory/large.h"
#include "memory/unit_cache.h"

static void *out_of_memory(void) {
  errno = ENOMEM;
  return NULL;
}

// The last resort before an allocation fails: what caches hold becomes free units, which serve any
// size.
TSL_COLD static void memory_regain(struct tsl_heap *heap) {
  tsl_heap_collect(heap->home);
  tsl_heap_collect_pool();
  tsl_unit_cache_drain(SIZE_MAX);
}

// The calling thread has no heap yet, or no more.
static void *malloc_first(size_t bytes) {
  struct tsl_lease lease;
  if (!tsl_thread_enter(&lease)) return out_of_memory();
  void *block = tsl_fast_malloc(bytes);
  tsl_thread_leave(&lease);
  return block;
}

TSL_NOINLINE static void *malloc_beyond_stock(struct tsl_heap *heap, unsigned class) {
  if (tsl_unlikely(heap == &tsl_heap_empty)) return malloc_first(tsl_sizeclasses[class].bytes);
  void *block = tsl_heap_refill(heap, class);
  if (tsl_unlikely(block == NULL)) {
    memory_regain(heap);
    block = tsl_heap_refill(heap, class);
  }
  tsl_helper_ensure();
  return tsl_likely(block != NULL) ? block : out_of_memory();
}

// Programs that allocate many blocks before they free any live on this.
void *tsl_malloc_beyond_bin(struct tsl_heap *heap, size_t place) {
  struct tsl_stock *stock = (struct tsl_stock *)((char *)heap->stocks + 2 * place);
  if (tsl_likely(stock->run != 0)) return tsl_stock_pop(stock);
  if (tsl_stock_run(stock)) return tsl_stock_pop(stock);
  return malloc_beyond_stock(heap, (unsigned)(place / sizeof(struct tsl_bin)));
}

void *tsl_malloc_slow(size_t bytes, struct tsl_heap *heap) {
  if (bytes > TSL_SMALL_LIMIT) return tsl_malloc_large(bytes, 1, NULL);
  size_t place = tsl_sizeclass_of_medium(bytes) * sizeof(struct tsl_bin);
  TSL_RETURN_POPPED(heap, place, tsl_malloc_beyond_bin(heap, place));
}

void *tsl_malloc_large(size_t bytes, size_t alignment, bool *clean) {
  struct tsl_lease lease = {NULL};
  bool ignored;
  bool fits = bytes <= PTRDIFF_MAX && alignment <= PTRDIFF_MAX;
  if (!fits || (tsl_heap_current == &tsl_heap_empty && !tsl_thread_enter(&lease)))
    return out_of_memory();
  uint32_t entry = tsl_heap_current->tag | TSL_CODE_LARGE;
  if (clean == NULL) clean = &ignored;
  void *block = tsl_large_alloc(bytes, alignment, entry, clean);
  if (tsl_unlikely(block == NULL)) {
    memory_regain(tsl_heap_current);
    block = tsl_large_alloc(bytes, alignment, entry, clean);
  }
  tsl_thread_leave(&lease);
  return block == NULL ? out_of_memory() : block;
}

void *tsl_calloc_large(size_t bytes) {
  bool clean;
  void *block = tsl_malloc_large(bytes, 1, &clean);
  if (block == NULL || clean) return block;
  return memset(block, 0, bytes);
}

void tsl_free_full(struct tsl_heap *heap, void *block, size_t code) {
  unsigned class = (unsigned)code / 2;
  heap->bins[class].room++;
  tsl_heap_put(heap, class, block);
}

void tsl_free_twice(struct tsl_heap *heap, void *block, size_t code) {
  heap->bins[code / 2].room++;
  tsl_misuse("free(%p): the block is free already", block);
}

static void free_large(void *block) {
  if (((uintptr_t)block & (TSL_UNIT_BYTES - 1)) != 0) {
    tsl_misuse("free(%p): not the beginning of a block", block);
    return;
  }
  tsl_large_free(block);
}

void tsl_free_slow(void *block) {
  if (block == NULL) return;
  uint32_t entry = tsl_map_lookup(block);
  unsigned code = entry & ((1u << TSL_CODE_BITS) - 1);
  if (entry == 0) {
    tsl_misuse("free(%p): not a block of this allocator", block);
  } else if (code == TSL_CODE_LARGE) {
    free_large(block);
  } else {
    tsl_heap_put_remote(entry >> TSL_CODE_BITS, code / 2, block);
  }
}
