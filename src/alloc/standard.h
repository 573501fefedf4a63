// standard: what the C standard and POSIX demand around the fast paths (sizes of 0, overflow,
// errno), for tslab_* and for the names of other libraries alike.
#pragma once

#include <errno.h>

#include "alloc/aligned.h"
#include "alloc/malloc.h"
#include "alloc/realloc.h"

// A free with a size. The secure build compares it with the size that the block was asked for, and
// above 32 KiB with what it could have been.
TSL_ALWAYS_INLINE void tsl_fast_free_sized(void *block, size_t bytes) {
  if (TSL_SECURE) tsl_check_size(block, bytes);
  tsl_fast_free(block);
}

TSL_ALWAYS_INLINE void *tsl_entry_realloc(void *block, size_t bytes) {
  if (tsl_unlikely(bytes == 0 && block != NULL)) {
    tsl_fast_free(block);
    return NULL;
  }
  return tsl_realloc(block, bytes);
}

TSL_ALWAYS_INLINE bool tsl_entry_product(size_t count, size_t bytes, size_t *total) {
  if (!__builtin_mul_overflow(count, bytes, total)) return true;
  errno = ENOMEM;
  return false;
}

TSL_ALWAYS_INLINE void *tsl_entry_aligned(size_t alignment, size_t bytes) {
  if (tsl_likely(tsl_is_power_of_two(alignment))) return tsl_fast_aligned(alignment, bytes);
  errno = EINVAL;
  return NULL;
}

TSL_ALWAYS_INLINE int tsl_entry_posix_memalign(void **result, size_t alignment, size_t bytes) {
  if (!tsl_is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
  int saved = errno;
  void *block = tsl_fast_aligned(alignment, bytes);
  errno = saved;
  if (block == NULL) return ENOMEM;
  *result = block;
  return 0;
}
