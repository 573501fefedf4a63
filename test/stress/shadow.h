// shadow: blocks with a record kept outside them, so that damage, overlap and loss show at the next
// look.
//
// A block's content follows from its seed. Blocks to 16 KiB are filled and verified whole, larger
// ones at both ends and once a page, so that a stress run is about the allocator and not about
// memset.
#ifndef TSLAB_TEST_SHADOW_H
#define TSLAB_TEST_SHADOW_H

#include "../process.h"
#include "allocator.h"

#define SHADOW_WHOLE (16 * KIB)
#define SHADOW_STEP 4096

struct shadow {
  unsigned char *block;
  size_t size;
  uint64_t seed;
};

struct random {
  uint64_t state;
};

// splitmix64 (Steele, Lea, Flood 2014).
static inline uint64_t random_next(struct random *random) {
  uint64_t mixed = random->state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

static inline size_t random_below(struct random *random, size_t limit) {
  return (size_t)(random_next(random) % limit);
}

// Log-uniform below 2^log2: as many sizes between 16 and 32 as between 1 MiB and 2 MiB.
static inline size_t random_size(struct random *random, int log2) {
  size_t limit = (size_t)1 << random_below(random, (size_t)log2 + 1);
  return random_below(random, limit);
}

static inline uint64_t shadow_word(uint64_t seed, size_t offset) {
  return (seed ^ offset) * 0x9e3779b97f4a7c15;
}

static inline void shadow_word_fill(struct shadow *shadow, size_t offset) {
  uint64_t word = shadow_word(shadow->seed, offset);
  size_t rest = shadow->size - offset;
  memcpy(shadow->block + offset, &word, rest < sizeof word ? rest : sizeof word);
}

static inline void shadow_word_check(const struct shadow *shadow, size_t offset) {
  uint64_t word = shadow_word(shadow->seed, offset);
  size_t rest = shadow->size - offset;
  CHECK_THAT(memcmp(shadow->block + offset, &word, rest < sizeof word ? rest : sizeof word) == 0,
             "block %p of %zu bytes is damaged at offset %zu", (const void *)shadow->block,
             shadow->size, offset);
}

static inline size_t shadow_last(const struct shadow *shadow) {
  return (shadow->size - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static inline size_t shadow_step(const struct shadow *shadow) {
  return shadow->size <= SHADOW_WHOLE ? sizeof(uint64_t) : SHADOW_STEP;
}

static inline void shadow_fill(struct shadow *shadow) {
  size_t step = shadow_step(shadow);
  for (size_t offset = 0; offset < shadow->size; offset += step) shadow_word_fill(shadow, offset);
  if (shadow->size != 0) shadow_word_fill(shadow, shadow_last(shadow));
}

static inline void shadow_check(const struct shadow *shadow) {
  size_t step = shadow_step(shadow);
  for (size_t offset = 0; offset < shadow->size; offset += step) shadow_word_check(shadow, offset);
  if (shadow->size != 0) shadow_word_check(shadow, shadow_last(shadow));
}

// Takes over a fresh block of `size` bytes, which may be NULL; returns whether there is one.
static inline int shadow_take(struct shadow *shadow, void *block, size_t size, uint64_t seed) {
  *shadow = (struct shadow){(unsigned char *)block, size, seed};
  if (block == NULL) return 0;
  CHECK_THAT(((uintptr_t)block & 15) == 0, "size %zu gave %p", size, block);
  CHECK_GE(allocator_usable_size(block), size);
  shadow_fill(shadow);
  return 1;
}

static inline void shadow_drop(struct shadow *shadow) {
  if (shadow->block == NULL) return;
  shadow_check(shadow);
  allocator_free(shadow->block);
  shadow->block = NULL;
}

// The content that survives a change of size is verified before the rest is written.
static inline int shadow_resize(struct shadow *shadow, size_t size) {
  shadow_check(shadow);
  struct shadow moved = *shadow;
  moved.block = (unsigned char *)allocator_realloc(shadow->block, size);
  if (moved.block == NULL) {
    shadow_check(shadow);
    return 0;
  }
  size_t kept = size < shadow->size ? size : shadow->size, step = shadow_step(shadow);
  for (size_t offset = 0; offset + sizeof(uint64_t) <= kept; offset += step)
    shadow_word_check(&moved, offset);
  return shadow_take(shadow, moved.block, size, shadow->seed + 1);
}

#endif
