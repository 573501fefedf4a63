/* tslab: a memory allocator that knows lifetimes. The whole C interface.
 *
 * Programs that only want a faster malloc need none of this: they start with libtslab-preload.so
 * preloaded, or link tslab::preload. What stands here works beside it: there is one allocator in
 * a process, whichever way it was reached.
 *
 * Every function may be called by any thread at any time, before constructors and after exit
 * included, unless it says otherwise. None is async-signal-safe. Errors are errno values. */
#pragma once

#include <stddef.h>

#define TSLAB_VERSION "0.1.0"

#if defined(__cplusplus)
extern "C" {
#define TSLAB_NOEXCEPT noexcept
#else
#define TSLAB_NOEXCEPT
#endif

#if defined(__GNUC__)
#define TSLAB_API __attribute__((visibility("default")))
#define TSLAB_MALLOC __attribute__((malloc, warn_unused_result))
#define TSLAB_SIZE(position) __attribute__((alloc_size(position)))
#define TSLAB_SIZES(count, bytes) __attribute__((alloc_size(count, bytes)))
#define TSLAB_MUST_USE __attribute__((warn_unused_result))
#define TSLAB_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))
#else
#define TSLAB_API
#define TSLAB_MALLOC
#define TSLAB_SIZE(position)
#define TSLAB_SIZES(count, bytes)
#define TSLAB_MUST_USE
#define TSLAB_NONNULL(...)
#endif

/* A block of at least `bytes` bytes, aligned to 16. A size of 0 gives a block of its own, too.
 * Fails: NULL and ENOMEM, also for sizes above PTRDIFF_MAX. */
TSLAB_API void *tslab_malloc(size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC TSLAB_SIZE(1);

/* A zeroed block for `count` objects of `bytes` bytes.
 * Fails: as tslab_malloc, also when the product overflows. */
TSLAB_API void *tslab_calloc(size_t count, size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_SIZES(1, 2);

/* Changes the size of a block, moving it where it must; contents stay up to the smaller size.
 * NULL for `block` allocates; a size of 0 frees the block and returns NULL.
 * Fails: NULL and ENOMEM, and the block is as before. */
TSLAB_API void *tslab_realloc(void *block, size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE
    TSLAB_SIZE(2);

/* tslab_realloc for `count` objects of `bytes` bytes.
 * Fails: also, and likewise, when the product overflows. */
TSLAB_API void *tslab_reallocarray(void *block, size_t count,
                                   size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE TSLAB_SIZES(2, 3);

/* Ends a block; NULL is allowed. Keeps errno. A pointer that is no live block is misuse: option
 * `on_error`. */
TSLAB_API void tslab_free(void *block) TSLAB_NOEXCEPT;

/* A block aligned to `alignment`, a power of two.
 * Fails: NULL and EINVAL or ENOMEM. */
TSLAB_API void *tslab_aligned_alloc(size_t alignment, size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_SIZE(2);

/* The same as POSIX has it: `alignment` is also a multiple of sizeof(void *), the error is
 * returned, errno stays, and `*block` is written on success only. */
TSLAB_API int tslab_posix_memalign(void **block, size_t alignment,
                                   size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE TSLAB_NONNULL(1);

/* Bytes of a block that the program may use: at least what it asked for, the same for the block's
 * life. 0 for NULL. */
TSLAB_API size_t tslab_usable_size(const void *block) TSLAB_NOEXCEPT;

/* What tslab_usable_size would say of a block of `bytes` bytes; 0 when there can be none. */
TSLAB_API size_t tslab_good_size(size_t bytes) TSLAB_NOEXCEPT;

/* Gives free memory back to the system, but for `keep_bytes` bytes. Collects the calling thread's
 * caches and those of threads that ended; takes time in proportion to what it gives back.
 * Returns 1 when there was some, 0 otherwise. */
TSLAB_API int tslab_trim(size_t keep_bytes) TSLAB_NOEXCEPT;

/* The version of the library that runs, which may be newer than TSLAB_VERSION. */
TSLAB_API const char *tslab_version(void) TSLAB_NOEXCEPT;

/* Writes an option's value (docs/options.md) as text to `value`, `size` bytes long.
 * Returns 0, ENOENT for an unknown name, ERANGE when `size` is too small. */
TSLAB_API int tslab_option_get(const char *name, char *value, size_t size) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1, 2);

/* Sets an option at run time.
 * Returns 0, ENOENT for an unknown name, EINVAL for a value that does not fit; then nothing
 * changed. `reserve`, `thp` and `confirm` are looked at once, before the first allocation. */
TSLAB_API int tslab_option_set(const char *name, const char *value) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1, 2);

#if defined(__cplusplus)
}
#endif
