#include "alloc/realloc.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/guarded.h"
#include "alloc/malloc.h"
#include "alloc/stay.h"
#include "alloc/thread.h"
#include "epoch/keep.h"
#include "epoch/large_list.h"
#include "heap/cells.h"
#include "heap/mixed.h"
#include "memory/large.h"
#include "memory/purge.h"
#include "slab/canary.h"
#include "slab/zero.h"
#include "state/misuse.h"
#include "upkeep/collect.h"
#include "upkeep/pool.h"

size_t tsl_usable(const void *block) {
  if (block == NULL) return 0;
  uint32_t entry = tsl_map_lookup(block);
  unsigned code = tsl_entry_code(entry), class = tsl_code_class(code);
  if (code == TSL_CODE_LARGE) return tsl_large_bytes(block);
  if (tsl_code_is_cell(code)) class = tsl_cells_block_class(block);
  if (entry != 0 && class < TSL_CLASSES) return tsl_canary_usable(block, class);
  if (!tsl_zero_has(block)) tsl_misuse_foreign("usable_size", block);
  return 0;
}

size_t tsl_good_size(size_t bytes) {
  if (TSL_SECURE && bytes <= TSL_CANARY_LIMIT) return bytes;
  if (bytes <= TSL_CANARY_LIMIT) return tsl_sizeclasses[tsl_sizeclass_of(bytes)].bytes;
  return bytes > PTRDIFF_MAX ? 0 : tsl_round_up(bytes, TSL_UNIT_BYTES);
}

// A block stays where it is until less than half of it is wanted: a buffer that was cut down would
// otherwise keep what it had. Where no class is smaller nothing would be gained.
static bool fits_in_place(size_t usable, size_t bytes) {
  return bytes <= usable && (bytes >= usable / 2 || tsl_good_size(bytes) == usable);
}

// Behind the block that was cut last off a cell its memory goes on.
static bool stretch(const void *block, size_t bytes) {
  if (TSL_SECURE || bytes > TSL_CELL_BLOCK_LIMIT) return false;
  return tsl_cells_stretch(tsl_heap_current, block, tsl_sizeclass_of(bytes));
}

bool tsl_resize_in_place(void *block, size_t usable, size_t bytes) {
  if (tsl_guarded_has(block)) return tsl_guarded_resize(block, bytes == 0 ? 1 : bytes);
  return fits_in_place(usable, bytes) || (bytes > usable && stretch(block, bytes));
}

// Where the block grows, its epoch's limits may call the program back, which needs a home: this may
// be the thread's first call.
static void *resize_large(void *block, size_t bytes, bool may_move) {
  struct tsl_lease lease = {NULL};
  if (bytes > PTRDIFF_MAX) return NULL;
  if (!tsl_thread_ensure(&lease) && bytes > tsl_large_bytes(block)) return NULL;
  void *resized = tsl_large_list_resize(block, bytes, may_move);
  tsl_thread_leave(&lease);
  return resized;
}

bool tsl_resize_without_move(void *block, size_t bytes) {
  size_t usable = tsl_usable(block), wanted = bytes == 0 ? 1 : bytes;
  if (usable == 0) return block != NULL && bytes == 0 && tsl_zero_has(block);
  if (tsl_resize_in_place(block, usable, wanted)) return true;
  // Blocks of slabs have the bytes of their class, and large ones have units of their own: neither
  // becomes the other in place.
  if (usable <= TSL_SMALL_LIMIT || bytes <= TSL_SMALL_LIMIT) return false;
  return resize_large(block, bytes, false) != NULL;
}

static bool is_size_of(const void *block, size_t usable, size_t bytes) {
  if (tsl_guarded_has(block)) return usable == (bytes == 0 ? 1 : bytes);
  return fits_in_place(usable, bytes);
}

void tsl_check_size(const void *block, size_t bytes) {
  size_t usable = tsl_usable(block);
  if (block == NULL || is_size_of(block, usable, bytes)) return;
  tsl_misuse_size(block, bytes, usable);
}

// The old block is freed last: without memory for the new one the program keeps it as it was.
static void *realloc_copy(void *block, size_t usable, size_t bytes) {
  void *moved = tsl_malloc_beside(block, bytes);
  if (moved == NULL) return NULL;
  if (tsl_unlikely(tsl_load_relaxed(&tsl_region.has_kept) != 0)) tsl_keep_instead(block, moved);
  memcpy(moved, block, bytes < usable ? bytes : usable);
  tsl_fast_free(block);
  return moved;
}

void *tsl_realloc(void *block, size_t bytes) {
  if (block == NULL) return tsl_fast_malloc(bytes);
  size_t usable = tsl_usable(block);
  if (usable == 0 && !tsl_zero_has(block)) return NULL;  // tsl_usable has reported the misuse
  if (tsl_resize_in_place(block, usable, bytes)) return block;
  if (usable > TSL_SMALL_LIMIT && bytes > TSL_SMALL_LIMIT) {
    void *resized = resize_large(block, bytes, true);
    if (resized != NULL) return resized;
  }
  // Also a large block to which its epoch, which has ended or is at its limit, gives no more.
  return realloc_copy(block, usable, bytes);
}

TSL_NOINLINE static void *calloc_odd(struct tsl_heap *heap, size_t offset,
                                     struct tsl_free_block *block, size_t bytes) {
  void *other = tsl_malloc_odd(heap, offset, block);
  return other == NULL ? NULL : memset(other, 0, bytes);
}

// Large blocks know which of their pages are zero already.
TSL_NOINLINE static void *calloc_slow(size_t bytes) {
  if (bytes > TSL_SMALL_LIMIT) return tsl_calloc_large(bytes);
  void *block = tsl_fast_malloc(bytes);
  return block == NULL ? NULL : memset(block, 0, bytes);
}

void *tsl_calloc(size_t count, size_t bytes) {
  size_t total;
  struct tsl_heap *heap = tsl_heap_current;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return NULL;
  }
  if (tsl_unlikely(total > TSL_TINY_LIMIT) || TSL_SECURE) return calloc_slow(total);
  size_t offset = tsl_tiny_offsets[total];
  TSL_RETURN_POPPED_AS(heap, offset, memset(block_, 0, total),
                       calloc_odd(heap, offset, block_, total));
  return calloc_slow(total);
}

// Heaps come first: what they give back is purged with the rest.
bool tsl_trim(size_t keep_bytes) {
  tsl_heap_collect_all();
  return tsl_purge_all(keep_bytes) != 0;
}
