#include "memory/kept.h"

#include "memory/growth.h"

typedef uint64_t __attribute__((may_alias)) kept_word;
enum { WORD_LOG2 = TSL_KEPT_LOG2 + 3 };  // of the memory that a word of bits tells of

bool tsl_kept_begin(void) {
  return tsl_load_acquire(&tsl_region.has_kept) != 0 ||  // pairs: region-kept
         tsl_region_open_kept();
}

void tsl_kept_set(const void *block) {
  tsl_or_acq_rel(tsl_kept_byte((uintptr_t)block), (uint8_t)tsl_kept_bit(block));  // pairs: kept
}

bool tsl_kept_any(uintptr_t start, size_t bytes) {
  const kept_word *words = (const kept_word *)(void *)tsl_kept_byte(start);
  for (size_t i = 0; i < bytes >> WORD_LOG2; i++)
    if (tsl_load_relaxed(&words[i]) != 0) return true;
  return false;
}

void tsl_kept_clear(const void *block) {
  uint8_t *byte = tsl_kept_byte((uintptr_t)block);
  if ((tsl_load_relaxed(byte) & tsl_kept_bit(block)) == 0) return;
  tsl_and_acq_rel(byte, (uint8_t)~tsl_kept_bit(block));  // pairs: kept
}
