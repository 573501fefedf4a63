// cxx: every operator new and delete of C++17 by its Itanium name, in C, so that programs without a
// C++ runtime need none.
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "alloc/standard.h"
#include "base/warn.h"
#include "override/nothrow.h"
#include "override/override.h"

typedef void new_handler(void);

// The C++ runtime's, where there is one: in the program, or loaded later.
extern new_handler *_ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak, noreturn));
#pragma weak dlsym

static void *runtime_symbol(void *linked, const char *name) {
  if (linked != NULL || dlsym == NULL) return linked;
  return dlsym(NULL, name);
}

static new_handler *current_handler(void) {
  new_handler *(*get)(void) = (new_handler * (*)(void))
      runtime_symbol((void *)_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv");
  return get == NULL ? NULL : get();
}

static void throw_bad_alloc(void) {
  void (*throw_)(void) =
      (void (*)(void))runtime_symbol((void *)_ZSt17__throw_bad_allocv, "_ZSt17__throw_bad_allocv");
  if (throw_ != NULL) throw_();
  tsl_warn("operator new: out of memory, and no C++ runtime to throw std::bad_alloc");
  abort();
}

// [new.delete.single]: call the handler and try again, until there is no handler.
TSL_NOINLINE static void *new_again(size_t alignment, size_t bytes, bool throws) {
  for (;;) {
    new_handler *handler = current_handler();
    if (handler == NULL) break;
    if (throws) {
      handler();
    } else if (!tsl_call_new_handler(handler)) {
      return NULL;
    }
    void *block = tsl_entry_aligned(alignment, bytes);
    if (block != NULL) return block;
  }
  if (throws) throw_bad_alloc();
  return NULL;
}

TSL_NOINLINE static void *new_slow(size_t bytes, bool throws) {
  void *block = tsl_fast_malloc(bytes);
  return tsl_likely(block != NULL) ? block : new_again(TSL_BLOCK_ALIGNMENT, bytes, throws);
}

// The size is that of the class, which serves the request as well, so that it need not be kept.
TSL_NOINLINE static void *new_beyond_bin(size_t offset, struct tsl_heap *heap, bool throws) {
  void *block = tsl_malloc_beyond_bin(offset, heap);
  if (tsl_likely(block != NULL)) return block;
  size_t bytes = tsl_sizeclasses[tsl_offset_class(offset)].bytes;
  return new_again(TSL_BLOCK_ALIGNMENT, bytes, throws);
}

TSL_ALWAYS_INLINE void *new_plain(size_t bytes, bool throws) {
  struct tsl_heap *heap = tsl_heap_current;
  if (tsl_unlikely(bytes > TSL_TINY_LIMIT) || TSL_SECURE) return new_slow(bytes, throws);
  size_t offset = tsl_tiny_offsets[bytes];
  TSL_RETURN_POPPED(heap, offset);
  return new_beyond_bin(offset, heap, throws);
}

TSL_NOINLINE static void *new_beyond_plain(size_t bytes, size_t alignment, bool throws) {
  void *block = tsl_entry_aligned(alignment, bytes);
  return tsl_likely(block != NULL) ? block : new_again(alignment, bytes, throws);
}

// Memory resources of the standard library ask for the alignment that every block has.
TSL_ALWAYS_INLINE void *new_aligned(size_t bytes, size_t alignment, bool throws) {
  if (tsl_likely(alignment <= TSL_BLOCK_ALIGNMENT)) return new_plain(bytes, throws);
  return new_beyond_plain(bytes, alignment, throws);
}

// new; arguments: size, std::align_val_t, const std::nothrow_t &
FACE void *_Znwm(size_t bytes) { return new_plain(bytes, true); }
FACE void *_ZnwmRKSt9nothrow_t(size_t bytes, const void *nothrow TSL_UNUSED) {
  return new_plain(bytes, false);
}
FACE void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment) {
  return new_aligned(bytes, alignment, true);
}
FACE void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, size_t alignment,
                                              const void *nothrow TSL_UNUSED) {
  return new_aligned(bytes, alignment, false);
}

ALIAS(_Znwm, _Znam);
ALIAS(_ZnwmRKSt9nothrow_t, _ZnamRKSt9nothrow_t);
ALIAS(_ZnwmSt11align_val_t, _ZnamSt11align_val_t);
ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t, _ZnamSt11align_val_tRKSt9nothrow_t);

// delete; only the secure build looks at the size.
FACE void _ZdlPv(void *block) { tsl_fast_free(block); }
FACE void _ZdlPvm(void *block, size_t bytes) { tsl_fast_free_sized(block, bytes); }
FACE void _ZdlPvmSt11align_val_t(void *block, size_t bytes TSL_UNUSED,
                                 size_t alignment TSL_UNUSED) {
  tsl_fast_free(block);
}
FACE void _ZdlPvSt11align_val_t(void *block, size_t alignment TSL_UNUSED) { tsl_fast_free(block); }
FACE void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow TSL_UNUSED) {
  tsl_fast_free(block);
}
FACE void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment TSL_UNUSED,
                                              const void *nothrow TSL_UNUSED) {
  tsl_fast_free(block);
}

ALIAS(_ZdlPv, _ZdaPv);
ALIAS(_ZdlPvm, _ZdaPvm);
ALIAS(_ZdlPvmSt11align_val_t, _ZdaPvmSt11align_val_t);
ALIAS(_ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t);
ALIAS(_ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t);
ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t);
