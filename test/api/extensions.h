// extensions: what the library exports and the C library's headers do not declare.
//
// A program run with the preload library finds these at run time, a program linked with the archive
// at link time.
#ifndef TSLAB_TEST_EXTENSIONS_H
#define TSLAB_TEST_EXTENSIONS_H

#include <dlfcn.h>
#include <malloc.h>
#include <stddef.h>

#include "../check.h"
#include "../process.h"

#ifdef __cplusplus
extern "C" {
#endif

extern void free_sized(void *block, size_t size);
extern void free_aligned_sized(void *block, size_t alignment, size_t size);
extern void *reallocf(void *block, size_t size);
extern int reallocarr(void *block_pointer, size_t count, size_t size);
extern size_t malloc_size(const void *block);
extern size_t malloc_good_size(size_t size);
extern void vfree(void *block);
extern void cfree(void *block);

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);
extern void __libc_cfree(void *block);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_valloc(size_t size);
extern void *__libc_pvalloc(size_t size);
extern int __posix_memalign(void **block, size_t alignment, size_t size);

#ifdef __cplusplus
}
#endif

#ifdef TEST_STATIC
#define SYMBOL(name) name
#else
#define SYMBOL(name) ((__typeof__(&name))symbol_find(#name))

static inline void *symbol_find(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  CHECK_THAT(symbol != NULL, "symbol %s is not exported", name);
  return symbol;
}
#endif

#endif
