// hash: FNV-1a (Fowler, Noll, Vo), over bytes or over words.
#pragma once

#include <stdint.h>

#define TSL_HASH_EMPTY UINT64_C(14695981039346656037)

// The hash of what `hash` is of, followed by `value`. A bit of it depends on no higher bit of a
// value: who takes some of its low bits folds the high ones in first.
static inline uint64_t tsl_hash_add(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(1099511628211);
}
