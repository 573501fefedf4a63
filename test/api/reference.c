// reference: the promises kept by glibc's own allocator, for preloading, and one of them broken on
// request.
//
// It proves the tests: they pass without REFERENCE_FAULT, and each fault makes the test that guards
// the promise fail.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extensions.h"

// Programs check this library, which has checks of its own compiled in.
__attribute__((constructor)) static void reference_waive(void) { check_waive(); }

#define REFERENCE __attribute__((visibility("default")))

static int has_fault(const char *name) {
  const char *fault = getenv("REFERENCE_FAULT");
  return fault != NULL && strcmp(fault, name) == 0;
}

// The fault "alignment" moves every block by 8 bytes.
static void *shifted(void *block, size_t by) { return block == NULL ? NULL : (char *)block + by; }

static void *origin(void *block) { return shifted(block, (uintptr_t)block & 8 ? (size_t)-8 : 0); }

static size_t usable(void *block) {
  static size_t (*next)(void *);
  if (next == NULL) next = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
  return next(block);
}

static void *refuse(int error) {
  errno = error;
  return NULL;
}

REFERENCE void *malloc(size_t size) {
  if (size == 0 && has_fault("zero-is-null")) return NULL;
  if (size > PTRDIFF_MAX) return refuse(has_fault("no-errno") ? 0 : ENOMEM);
  if (has_fault("alignment")) return shifted(__libc_malloc(size + 8), 8);
  if (has_fault("overlap") && size > 100) return __libc_malloc(size - 50);
  return __libc_malloc(size);
}

REFERENCE void free(void *block) {
  int saved = errno;
  __libc_free(origin(block));
  errno = has_fault("free-sets-errno") ? EINVAL : saved;
}

REFERENCE void *calloc(size_t count, size_t size) {
  size_t total;
  int overflow = __builtin_mul_overflow(count, size, &total);
  if (overflow && !has_fault("no-overflow-check")) return refuse(ENOMEM);
  void *block = malloc(total);
  if (block == NULL || (has_fault("calloc-dirty") && total > 100000)) return block;
  return memset(block, 0, total);
}

REFERENCE size_t malloc_usable_size(void *block) {
  if (block == NULL) return 0;
  return usable(origin(block)) - (has_fault("usable-too-small") ? 16 : 0);
}

// As if the block were freed, and another's by now: what free writes may be what stood there.
static void *lose(unsigned char *block, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) block[i] ^= 0xff;
  return NULL;
}

REFERENCE void *realloc(void *block, size_t size) {
  if (block == NULL) return malloc(size);
  size_t before = malloc_usable_size(block);
  if (size == 0) return has_fault("zero-leaks") ? NULL : (free(block), NULL);
  int fits = size <= before && (size > before / 2 || before < 100);
  if (fits && !has_fault("always-moves")) return block;
  void *moved = malloc(size);
  if (moved == NULL) return has_fault("failure-frees") ? lose(block, before) : NULL;
  size_t kept = size < before ? size : before;
  memcpy(moved, block, has_fault("content-lost") && kept > 5000 ? kept - 1000 : kept);
  free(block);
  return moved;
}

REFERENCE void *reallocarray(void *block, size_t count, size_t size) {
  size_t total;
  int overflow = __builtin_mul_overflow(count, size, &total);
  return overflow ? refuse(ENOMEM) : realloc(block, total);
}

REFERENCE void *memalign(size_t alignment, size_t size) {
  if (size > PTRDIFF_MAX - alignment) return refuse(ENOMEM);
  if (alignment <= 8) return malloc(size);
  return __libc_memalign(has_fault("page-at-most") && alignment > 4096 ? 4096 : alignment, size);
}

REFERENCE void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

REFERENCE int posix_memalign(void **block, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) || alignment == 0 || (alignment & (alignment - 1))) return EINVAL;
  int saved = errno;
  void *made = memalign(alignment, size);
  if (!has_fault("posix-sets-errno")) errno = saved;
  if (made != NULL || has_fault("posix-writes-null")) *block = made;
  return made == NULL ? ENOMEM : 0;
}

REFERENCE void *valloc(size_t size) { return memalign(4096, size); }

REFERENCE void *pvalloc(size_t size) {
  if (size > PTRDIFF_MAX) return refuse(ENOMEM);
  size_t pages = has_fault("pvalloc-exact") ? size : (size + 4095) / 4096 * 4096;
  return memalign(4096, pages);
}

REFERENCE void free_sized(void *block, size_t size) {
  if (!has_fault("sized-leaks") || size < 10000) free(block);
}

REFERENCE void free_aligned_sized(void *block, size_t alignment, size_t size) {
  (void)alignment, (void)size;
  free(block);
}

REFERENCE void cfree(void *block) { free(block); }
REFERENCE void vfree(void *block) { free(block); }
REFERENCE void __libc_cfree(void *block) { free(block); }
REFERENCE size_t malloc_size(const void *block) { return malloc_usable_size((void *)block); }

REFERENCE void *reallocf(void *block, size_t size) {
  void *moved = realloc(block, size);
  if (moved == NULL && size != 0 && !has_fault("reallocf-leaks")) free(block);
  return moved;
}

REFERENCE int reallocarr(void *place, size_t count, size_t size) {
  void *block;
  size_t total;
  int saved = errno;
  memcpy(&block, place, sizeof block);
  if (__builtin_mul_overflow(count, size, &total)) return EOVERFLOW;
  void *moved = total == 0 ? (free(block), NULL) : realloc(block, total);
  if (!has_fault("reallocarr-sets-errno")) errno = saved;
  if (moved == NULL && total != 0) return ENOMEM;
  memcpy(place, &moved, sizeof moved);
  return 0;
}

REFERENCE int __posix_memalign(void **block, size_t alignment, size_t size) {
  return posix_memalign(block, alignment, size);
}

REFERENCE void malloc_stats(void) {
  if (!has_fault("stats-silent")) dprintf(STDERR_FILENO, "statistics of the reference allocator\n");
}
