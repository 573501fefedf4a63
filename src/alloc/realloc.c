// realloc: sizes that change, and what a block's size is.
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/fast.h"
#include "base/check.h"
#include "memory/large.h"
#include "memory/purge.h"

size_t tsl_usable(const void *block) {
  if (block == NULL) return 0;
  uint32_t entry = tsl_map_lookup(block);
  unsigned code = entry & ((1u << TSL_CODE_BITS) - 1);
  if (code == TSL_CODE_LARGE) return tsl_large_bytes(block);
  if (entry != 0) return tsl_sizeclasses[code / 2].bytes;
  tsl_misuse("usable_size(%p): not a block of this allocator", block);
  return 0;
}

size_t tsl_good_size(size_t bytes) {
  if (bytes <= TSL_SMALL_LIMIT) return tsl_sizeclasses[tsl_sizeclass_of(bytes)].bytes;
  return bytes > PTRDIFF_MAX ? 0 : tsl_round_up(bytes, TSL_UNIT_BYTES);
}

// A block stays where it is while it wastes less than half of itself.
static bool fits_in_place(size_t usable, size_t bytes) {
  return bytes <= usable && (bytes >= usable / 2 || tsl_good_size(bytes) == usable);
}

void tsl_check_size(const void *block, size_t bytes) {
  size_t usable = tsl_usable(block);
  if (block == NULL || fits_in_place(usable, bytes)) return;
  tsl_misuse("free(%p): its size is given as %zu, but it has %zu bytes", block, bytes, usable);
}

static void *realloc_large(void *block, size_t bytes) {
  if (bytes > PTRDIFF_MAX) return NULL;
  if (tsl_large_resize(block, bytes)) return block;
  return tsl_large_move(block, bytes);
}

static void *realloc_copy(void *block, size_t usable, size_t bytes) {
  void *moved = tsl_fast_malloc(bytes);
  if (moved == NULL) return NULL;
  memcpy(moved, block, bytes < usable ? bytes : usable);
  tsl_fast_free(block);
  return moved;
}

void *tsl_realloc(void *block, size_t bytes) {
  if (block == NULL) return tsl_fast_malloc(bytes);
  size_t usable = tsl_usable(block);
  if (usable == 0) return NULL;
  if (fits_in_place(usable, bytes)) return block;
  if (usable > TSL_SMALL_LIMIT && bytes > TSL_SMALL_LIMIT) {
    void *resized = realloc_large(block, bytes);
    if (resized != NULL) return resized;
  }
  return realloc_copy(block, usable, bytes);
}

void *tsl_calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  if (tsl_likely(total <= TSL_SMALL_LIMIT)) {
    void *block = tsl_fast_malloc(total);
    return block == NULL ? NULL : memset(block, 0, total);
  }
  return tsl_calloc_large(total);
}

bool tsl_trim(size_t keep_bytes) {
  if (tsl_heap_current != &tsl_heap_empty) tsl_heap_collect(tsl_heap_current->home);
  tsl_heap_collect_pool();
  return tsl_purge_all(keep_bytes) != 0;
}
