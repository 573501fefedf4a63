// zero: one reservation without access, of 16 bytes a block. Nothing of it is ever mapped.
#include "slab/zero.h"

#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "os/os.h"
#include "slab/secure.h"
#include "slab/sizeclass.h"

enum {
  TAKEN_WORDS = TSL_ZERO_BLOCKS / 64,
  ZERO_BYTES = TSL_ZERO_BLOCKS * TSL_BLOCK_ALIGNMENT,
  WORD_BYTES = 64 * TSL_BLOCK_ALIGNMENT
};

static uintptr_t start;              // [remote] written once; 0: not reserved yet
static uint64_t taken[TAKEN_WORDS];  // [remote] bit i: a live block
static uint32_t next_word;           // [remote] takes go round: an address is not used again soon

static uintptr_t ensure_start(void) {
  uintptr_t seen = tsl_load_relaxed(&start), none = 0;
  if (tsl_likely(seen != 0)) return seen;
  void *place = tsl_os_forbid(ZERO_BYTES);
  if (place == NULL) return 0;
  while (!tsl_cas_relaxed(&start, &none, (uintptr_t)place)) {
    if (none == 0) continue;
    tsl_os_unreserve(place, ZERO_BYTES);
    return none;
  }
  return (uintptr_t)place;
}

// The blocks of a word that lie at multiples of the alignment, when its first one does.
static uint64_t aligned_blocks(size_t alignment) {
  uint64_t blocks = 1;
  if (alignment < TSL_BLOCK_ALIGNMENT) alignment = TSL_BLOCK_ALIGNMENT;
  for (size_t at = alignment; at < WORD_BYTES; at += alignment)
    blocks |= UINT64_C(1) << at / TSL_BLOCK_ALIGNMENT;
  return blocks;
}

static void *take_in_word(uint32_t word, uint64_t wanted) {
  uint64_t before = tsl_load_relaxed(&taken[word]);
  while ((~before & wanted) != 0) {
    unsigned index = tsl_secure_pick(~before & wanted);
    if (tsl_cas_relaxed(&taken[word], &before, before | UINT64_C(1) << index))
      return (void *)(tsl_load_relaxed(&start) +
                      (word * UINT64_C(64) + index) * TSL_BLOCK_ALIGNMENT);
  }
  return NULL;
}

void *tsl_zero_take(size_t alignment) {
  if (!TSL_SECURE || alignment > TSL_UNIT_BYTES || ensure_start() == 0) return NULL;
  uint32_t step = alignment <= WORD_BYTES ? 1 : (uint32_t)(alignment / WORD_BYTES);
  uint32_t first = tsl_add_relaxed(&next_word, 1);
  uint64_t wanted = aligned_blocks(alignment);
  for (uint32_t i = 0; i < TAKEN_WORDS / step; i++) {
    void *block = take_in_word((first + i) * step % TAKEN_WORDS, wanted);
    if (block != NULL) return block;
  }
  return NULL;
}

bool tsl_zero_contains(const void *address) {
  if (!TSL_SECURE) return false;
  uintptr_t from = tsl_load_relaxed(&start);
  return from != 0 && (uintptr_t)address - from < ZERO_BYTES;
}

static size_t index_of(const void *block) {
  return ((uintptr_t)block - tsl_load_relaxed(&start)) / TSL_BLOCK_ALIGNMENT;
}

bool tsl_zero_has(const void *block) {
  if (!tsl_zero_contains(block) || (uintptr_t)block % TSL_BLOCK_ALIGNMENT != 0) return false;
  size_t index = index_of(block);
  return (tsl_load_relaxed(&taken[index / 64]) >> index % 64 & 1) != 0;
}

enum tsl_zero tsl_zero_free(const void *block) {
  if ((uintptr_t)block % TSL_BLOCK_ALIGNMENT != 0) return TSL_ZERO_INTERIOR;
  size_t index = index_of(block);
  uint64_t bit = UINT64_C(1) << index % 64, before = tsl_load_relaxed(&taken[index / 64]);
  do {
    if ((before & bit) == 0) return TSL_ZERO_TWICE;
  } while (!tsl_cas_relaxed(&taken[index / 64], &before, before & ~bit));
  return TSL_ZERO_FREED;
}
