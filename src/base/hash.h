// hash: FNV-1a (Fowler, Noll, Vo), over bytes or over words, and places in tables.
#pragma once

#include <stdint.h>

#define TSL_HASH_EMPTY UINT64_C(14695981039346656037)

// The hash of what `hash` is of, followed by `value`. A bit of it depends on no higher bit of a
// value: who takes some of its low bits folds the high ones in first.
static inline uint64_t tsl_hash_add(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(1099511628211);
}

// A place below 2^log2, with `log2` from 1 to 64, on which all bits of the value bear: Fibonacci
// hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
static inline uint64_t tsl_hash_place(uint64_t value, unsigned log2) {
  return value * UINT64_C(0x9E3779B97F4A7C15) >> (64 - log2);
}
