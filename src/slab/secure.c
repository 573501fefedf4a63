#include "slab/secure.h"

enum { DRAWS = 6, DRAW_BITS = 6, SHARE_BITS = 64 - DRAWS * DRAW_BITS };

// The bit behind the lowest `skip` ones.
static unsigned pick_after(uint64_t blocks, unsigned skip) {
  for (; skip != 0; skip--) blocks &= blocks - 1;
  return tsl_lowest_bit(blocks);
}

// A place is drawn until there is a bit; where bits are few, one of them is counted off.
unsigned tsl_secure_pick_any(uint64_t blocks) {
  uint64_t random = tsl_os_random();
  for (unsigned draw = 0; draw < DRAWS; draw++, random >>= DRAW_BITS) {
    if ((blocks >> random % 64 & 1) != 0) return (unsigned)(random % 64);
  }
  return pick_after(blocks, (unsigned)(random * tsl_bit_count(blocks) >> SHARE_BITS));
}

bool tsl_secure_is_zero(const void *start, size_t bytes) {
  const char *at = start;
  uint64_t seen = 0, word;
  for (; bytes >= 4 * sizeof word; bytes -= 4 * sizeof word, at += 4 * sizeof word) {
    uint64_t words[4];
    memcpy(words, at, sizeof words);
    seen |= words[0] | words[1] | words[2] | words[3];
  }
  for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
    memcpy(&word, at, sizeof word);
    seen |= word;
  }
  for (; bytes != 0; bytes--, at++) seen |= (unsigned char)*at;
  return seen == 0;
}
