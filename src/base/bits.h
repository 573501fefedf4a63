// bits: arithmetic on sizes, powers of two and 64-bit words of flags.
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

static inline size_t tsl_at_most(size_t n, size_t most) { return n < most ? n : most; }
static inline size_t tsl_at_least(size_t n, size_t least) { return n > least ? n : least; }

// A word of which each byte is `byte`.
static inline uint64_t tsl_each_byte(uint8_t byte) { return UINT64_MAX / UINT8_MAX * byte; }

// `bits` from 1 to 63.
static inline uint64_t tsl_rotate_right(uint64_t word, unsigned bits) {
  return word >> bits | word << (64 - bits);
}

// The words must not be zero.
static inline unsigned tsl_lowest_bit(uint64_t word) { return (unsigned)__builtin_ctzll(word); }
static inline unsigned tsl_highest_bit(uint64_t word) {
  return 63u - (unsigned)__builtin_clzll(word);
}

// Pairs, nibbles, then bytes are added side by side (Warren, Hacker's Delight, 5-1): the built-in
// would be a call into the compiler's library where the processor need not have the instruction.
static inline unsigned tsl_bit_count(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (unsigned)(word * 0x0101010101010101u >> 56);
}

// The least power of two that is not below n, which is 2 or more.
static inline size_t tsl_power_of_two_from(size_t n) { return (size_t)2 << tsl_highest_bit(n - 1); }

// `count` ones from bit 0, for 0 to 64.
static inline uint64_t tsl_low_bits(unsigned count) {
  return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}
