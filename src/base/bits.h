// bits: arithmetic on powers of two and on 64-bit words of flags.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tsl_is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// `alignment` is a power of two; the caller has excluded overflow.
static inline size_t tsl_round_up(size_t n, size_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}
static inline size_t tsl_round_down(size_t n, size_t alignment) { return n & ~(alignment - 1); }
static inline size_t tsl_divide_up(size_t n, size_t divisor) { return (n + divisor - 1) / divisor; }

// The words must not be zero.
static inline unsigned tsl_lowest_bit(uint64_t word) { return (unsigned)__builtin_ctzll(word); }
static inline unsigned tsl_highest_bit(uint64_t word) {
  return 63u - (unsigned)__builtin_clzll(word);
}

static inline unsigned tsl_bit_count(uint64_t word) { return (unsigned)__builtin_popcountll(word); }

// `count` ones from bit 0, for 0 to 64.
static inline uint64_t tsl_low_bits(unsigned count) {
  return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}
