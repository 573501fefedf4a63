// pattern: recognises a block's content without touching all of a large one.
#pragma once

#include "test.h"

enum { PATTERN_PLACES = 16 };

static inline size_t pattern_step(size_t bytes) { return bytes / PATTERN_PLACES + 1; }

static inline void pattern_write(void *block, size_t bytes, unsigned seed) {
  unsigned char *at = block;
  for (size_t i = 0; i < bytes; i += pattern_step(bytes)) at[i] = (unsigned char)(seed + i);
  if (bytes != 0) at[bytes - 1] = (unsigned char)(seed ^ 0x5a);
}

// Whether the first `kept` bytes are still those that pattern_write left in a block of `bytes`.
static inline bool pattern_is(const void *block, size_t bytes, unsigned seed, size_t kept) {
  const unsigned char *at = block;
  for (size_t i = 0; i < kept; i += pattern_step(bytes)) {
    bool last = i == bytes - 1;
    unsigned char wanted = (unsigned char)(last ? seed ^ 0x5a : seed + i);
    if (at[i] != wanted) return false;  // NOLINT(clang-analyzer-core.NullDereference): never NULL
  }
  return kept < bytes || bytes == 0 || at[bytes - 1] == (unsigned char)(seed ^ 0x5a);
}

static inline bool pattern_is_zero(const void *block, size_t bytes) {
  const unsigned char *at = block;
  for (size_t i = 0; i < bytes; i += pattern_step(bytes)) {
    if (at[i] != 0) return false;
  }
  return bytes == 0 || at[bytes - 1] == 0;
}
