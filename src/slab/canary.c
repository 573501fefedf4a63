#include "slab/canary.h"

#include <string.h>

#include "base/atomic.h"
#include "os/os.h"
#include "slab/secure.h"

enum { TAG_BYTES = 8 };
#define TAG_ONES UINT64_C(0x0101010101010101)

static uint64_t canary_secret;  // [remote] written once

static uint64_t tag_of(const void *block) {
  uint64_t none = 0, drawn = tsl_load_relaxed(&canary_secret);
  for (; tsl_unlikely(drawn == 0); drawn = tsl_load_relaxed(&canary_secret), none = 0)
    tsl_cas_relaxed(&canary_secret, &none, tsl_os_random() | 1);
  uint64_t mixed = (drawn ^ (uintptr_t)block) * UINT64_C(0xbf58476d1ce4e5b9);
  return (mixed ^ mixed >> 31) | TAG_ONES;
}

struct padding {
  char *start;
  size_t bytes;
  size_t tag_bytes;
};

static struct padding padding_of(const void *block, unsigned class, size_t bytes) {
  size_t left = tsl_sizeclasses[class].bytes - bytes;
  return (struct padding){(char *)block + bytes, left, left < TAG_BYTES ? left : TAG_BYTES};
}

static void size_set(const void *block, unsigned class, size_t bytes) {
  uint8_t *granule = tsl_granule_at((uintptr_t)block);
  if (class != TSL_CLASS_OF_16)
    tsl_store_relaxed(granule + 1, (uint8_t)(bytes >> TSL_CANARY_LOW_BITS));
  tsl_store_relaxed(granule, (uint8_t)(bytes % TSL_CANARY_MOST + 1));
}

void tsl_canary_set(void *block, unsigned class, size_t bytes) {
  struct padding padding = padding_of(block, class, bytes);
  uint64_t tag = tag_of(block);
  memcpy(padding.start, &tag, padding.tag_bytes);
  size_set(block, class, bytes);
}

void tsl_canary_move(void *block, unsigned class, size_t bytes) {
  struct padding padding = padding_of(block, class, bytes);
  memset(padding.start, 0, padding.bytes);
  tsl_canary_set(block, class, bytes);
}

static bool padding_is_whole(const void *block, unsigned class, size_t bytes) {
  struct padding padding = padding_of(block, class, bytes);
  uint64_t tag = tag_of(block);
  return memcmp(padding.start, &tag, padding.tag_bytes) == 0 &&
         tsl_secure_is_zero(padding.start + padding.tag_bytes, padding.bytes - padding.tag_bytes);
}

bool tsl_canary_is_whole(const void *block, unsigned class) {
  return padding_is_whole(block, class, tsl_canary_bytes(block, class));
}

// K2.
bool tsl_canary_take(const void *block) {
  uint8_t *granule = tsl_granule_at((uintptr_t)block);
  bool taken = tsl_exchange_acq_rel(granule, 0) != 0;  // pairs: canary
  tsl_fence_seq_cst();                                 // pairs: canary
  return taken;
}

bool tsl_canary_is_damaged(const void *block, unsigned class) {
  unsigned low = tsl_canary_low(block);
  if (!tsl_canary_low_is_size(low)) return false;
  if (padding_is_whole(block, class, tsl_canary_bytes_of(block, class, low))) return false;
  tsl_fence_seq_cst();  // pairs: canary
  return tsl_canary_has(block);
}
