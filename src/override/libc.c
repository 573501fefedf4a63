// libc: the C library's allocation functions by their names, with the semantics of ISO C23, POSIX,
// glibc and the BSDs.
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/standard.h"
#include "os/os.h"
#include "override/override.h"

FACE TSL_FAST void *malloc(size_t bytes) { return tsl_fast_malloc(bytes); }

FACE TSL_FAST void free(void *block) { tsl_fast_free(block); }

FACE void *calloc(size_t count, size_t bytes) { return tsl_calloc(count, bytes); }

FACE void *realloc(void *block, size_t bytes) { return tsl_entry_realloc(block, bytes); }

FACE void *reallocarray(void *block, size_t count, size_t bytes) {
  size_t total;
  return tsl_entry_product(count, bytes, &total) ? tsl_entry_realloc(block, total) : NULL;
}

// FreeBSD: the block does not survive a failure.
FACE void *reallocf(void *block, size_t bytes) {
  void *moved = tsl_entry_realloc(block, bytes);
  if (moved == NULL && bytes != 0) tsl_fast_free(block);
  return moved;
}

// NetBSD: `place` is the address of the pointer; the error is returned.
FACE int reallocarr(void *place, size_t count, size_t bytes) {
  void *block;
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return EOVERFLOW;
  memcpy(&block, place, sizeof block);
  int saved = errno;
  void *moved = NULL;
  if (total == 0) {
    tsl_fast_free(block);
  } else {
    moved = tsl_realloc(block, total);
  }
  errno = saved;
  if (moved == NULL && total != 0) return ENOMEM;
  memcpy(place, &moved, sizeof moved);
  return 0;
}

FACE void *aligned_alloc(size_t alignment, size_t bytes) {
  return tsl_entry_aligned(alignment, bytes);
}

FACE void *memalign(size_t alignment, size_t bytes) { return tsl_entry_aligned(alignment, bytes); }

FACE int posix_memalign(void **block, size_t alignment, size_t bytes) {
  return tsl_entry_posix_memalign(block, alignment, bytes);
}

FACE void *valloc(size_t bytes) { return tsl_aligned(tsl_os_page_bytes(), bytes); }

FACE void *pvalloc(size_t bytes) {
  size_t page = tsl_os_page_bytes();
  if (bytes <= PTRDIFF_MAX) return tsl_aligned(page, tsl_round_up(bytes == 0 ? 1 : bytes, page));
  errno = ENOMEM;
  return NULL;
}

FACE void free_sized(void *block, size_t bytes) { tsl_fast_free_sized(block, bytes); }

FACE void free_aligned_sized(void *block, size_t alignment TSL_UNUSED, size_t bytes TSL_UNUSED) {
  tsl_fast_free(block);
}

FACE void cfree(void *block) { tsl_fast_free(block); }

FACE void vfree(void *block) { tsl_fast_free(block); }

FACE size_t malloc_usable_size(const void *block) { return tsl_usable(block); }

FACE size_t malloc_size(const void *block) { return tsl_usable(block); }

FACE size_t malloc_good_size(size_t bytes) { return tsl_good_size(bytes); }

// The names by which parts of glibc and old programs reach around malloc.
ALIAS(malloc, __libc_malloc);
ALIAS(free, __libc_free);
ALIAS(calloc, __libc_calloc);
ALIAS(realloc, __libc_realloc);
ALIAS(cfree, __libc_cfree);
ALIAS(memalign, __libc_memalign);
ALIAS(valloc, __libc_valloc);
ALIAS(pvalloc, __libc_pvalloc);
ALIAS(posix_memalign, __posix_memalign);
ALIAS(free_sized, __libc_free_sized);
ALIAS(free_aligned_sized, __libc_free_aligned_sized);

extern __typeof__(malloc) tsl_own_malloc TSL_HIDDEN __attribute__((alias("malloc")))
TSL_COPY(malloc);
