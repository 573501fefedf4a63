// compiler: the GNU attributes and the few code-generation hints the allocator needs, by name.
#pragma once

// The build may say that there is no unwinder.
#ifndef TSL_HAS_UNWINDER
#define TSL_HAS_UNWINDER 1
#endif

#define tsl_likely(condition) __builtin_expect(!!(condition), 1)
#define tsl_unlikely(condition) __builtin_expect(!!(condition), 0)

#define TSL_ALWAYS_INLINE static inline __attribute__((always_inline))
#define TSL_NOINLINE __attribute__((noinline))
#define TSL_COLD __attribute__((cold, noinline))
#define TSL_HIDDEN __attribute__((visibility("hidden")))
// Where a fast path begins must not depend on what is linked before it: half a cache line further
// on, the pair of malloc and free takes 6 % longer.
#define TSL_FAST __attribute__((aligned(64)))
#define TSL_EXPORT __attribute__((visibility("default")))
#define TSL_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define TSL_TLS __thread __attribute__((tls_model("initial-exec")))
#define TSL_CACHE_LINE 64
#define TSL_ON_LINE __attribute__((aligned(TSL_CACHE_LINE)))
// Read-only once the program is linked: a write stops it.
#define TSL_RELRO __attribute__((section(".data.rel.ro")))
#if __has_attribute(copy)
#define TSL_COPY(function) __attribute__((copy(function)))
#else
#define TSL_COPY(function)
#endif
// What clang proves with -Wthread-safety: a variable is read and written under its lock only, and a
// function is called with the lock held.
#if defined(__clang__)
#define TSL_ANALYSED(attribute) __attribute__((attribute))
#else
#define TSL_ANALYSED(attribute)
#endif
#define TSL_CAPABILITY TSL_ANALYSED(capability("lock"))
#define TSL_GUARDED_BY(lock) TSL_ANALYSED(guarded_by(lock))
#define TSL_REQUIRES(lock) TSL_ANALYSED(requires_capability(lock))
#define TSL_ACQUIRES(lock) TSL_ANALYSED(acquire_capability(lock))
#define TSL_TRY_ACQUIRES(lock) TSL_ANALYSED(try_acquire_capability(true, lock))
#define TSL_RELEASES(lock) TSL_ANALYSED(release_capability(lock))
// In a child of a fork, which has one thread, and where a lock is taken by other means.
#define TSL_NOT_ANALYSED TSL_ANALYSED(no_thread_safety_analysis)
#define TSL_UNUSED __attribute__((unused))
// Of a function that reads bytes which the program may not have written, or may be writing.
#define TSL_NOT_SANITIZED __attribute__((no_sanitize("address"), no_sanitize("thread")))

// Memory that can be read to a byte can be read to the next multiple of this: a page, or where
// memory may have tags a granule of them.
#if defined(__aarch64__)
#define TSL_READABLE_BYTES 16u
#else
#define TSL_READABLE_BYTES 4096u
#endif

#ifndef TSL_DEBUG
#define TSL_DEBUG 0
#endif
#ifndef TSL_SECURE
#define TSL_SECURE 0
#endif

// The rest shapes the code of the two fast paths, where each instruction is counted. What it says
// is what the plain C behind #else says.

// Hides a value's origin, so that each use is addressed as base + index instead of through one more
// register sum.
#define TSL_OPAQUE(value) __asm__("" : "+r"(value))

#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(__SANITIZE_THREAD__)
// Keeps a value that will be returned in the register in which it is returned.
#define TSL_RETURNED(value) __asm__("" : "+a"(value))
// One instruction on a field in memory. The value of the expression is one of the processor's
// flags.
#define TSL_FLAG_(flag, instruction, field)                               \
  __extension__({                                                         \
    int tsl_flag_;                                                        \
    __asm__(instruction " $1, %1" : "=@cc" flag(tsl_flag_), "+m"(field)); \
    tsl_flag_;                                                            \
  })
#define TSL_INCREMENT(field) __asm__("addl $1, %0" : "+m"(field) : : "cc")
// Decrements `until`, and subtracts `value` from `field`, and 1 more when `until` was 0. True when
// `field` is not 0 afterwards: one branch serves both events.
#define TSL_COUNT_AND_TAKE(until, field, value)             \
  __extension__({                                           \
    int tsl_flag_;                                          \
    __asm__("subl $1, %1\n\tsbbq %3, %2"                    \
            : "=@ccnz"(tsl_flag_), "+m"(until), "+m"(field) \
            : "r"(value));                                  \
    tsl_flag_;                                              \
  })
// XORs `other` into `value`, a register. True when the result is 0.
#define TSL_XOR_IS_ZERO(value, other)                                      \
  __extension__({                                                          \
    int tsl_flag_;                                                         \
    __asm__("xorq %2, %1" : "=@ccz"(tsl_flag_), "+r"(value) : "m"(other)); \
    tsl_flag_;                                                             \
  })
#define TSL_DECREMENT_IS_ZERO(field) TSL_FLAG_("z", "subl", field)
#define TSL_DECREMENT_IS_NEGATIVE(field) TSL_FLAG_("s", "subl", field)
#else
#define TSL_RETURNED(value) TSL_OPAQUE(value)
#define TSL_INCREMENT(field) ((field)++)
#define TSL_XOR_IS_ZERO(value, other) (((value) ^= (uintptr_t)(other)) == 0)
#define TSL_DECREMENT_IS_ZERO(field) (--(field) == 0)
#define TSL_DECREMENT_IS_NEGATIVE(field) (--(field) < 0)
#define TSL_COUNT_AND_TAKE(until, field, value) \
  ((until)--, ((field) -= (uintptr_t)(value) + ((until) == UINT32_MAX)) != 0)
#endif
