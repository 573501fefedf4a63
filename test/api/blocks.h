// blocks: sizes to try and patterns to fill blocks with.
#ifndef TSLAB_TEST_BLOCKS_H
#define TSLAB_TEST_BLOCKS_H

#include "extensions.h"

#define BLOCK_ALIGNMENT 16
#define SIZE_IMPOSSIBLE ((size_t)PTRDIFF_MAX + 1)

// Above every size that a size check refuses: only the kernel can say no to it.
#define SIZE_REFUSED_BY_KERNEL ((size_t)PTRDIFF_MAX - MIB)

// Every size to 1 KiB, then 16 a doubling, so that each size class is met and its borders nearly.
static inline size_t size_next(size_t size) { return size < KIB ? size + 1 : size + size / 16; }

static inline unsigned char pattern_byte(size_t index, unsigned seed) {
  return (unsigned char)((index * 167) ^ (index >> 8) ^ seed);
}

static inline void pattern_fill(void *block, size_t bytes, unsigned seed) {
  for (size_t index = 0; index < bytes; index++)
    ((unsigned char *)block)[index] = pattern_byte(index, seed);
}

static inline void pattern_check(const void *block, size_t bytes, unsigned seed) {
  const unsigned char *found = (const unsigned char *)block;
  for (size_t index = 0; index < bytes; index++)
    CHECK_THAT(found[index] == pattern_byte(index, seed), "byte %zu of %zu at %p is 0x%02x", index,
               bytes, block, found[index]);
}

static inline int is_aligned(const void *block, size_t alignment) {
  return ((uintptr_t)block & (alignment - 1)) == 0;
}

static inline void block_check(const void *block, size_t size) {
  CHECK_THAT(block != NULL, "size %zu", size);
  CHECK_THAT(is_aligned(block, BLOCK_ALIGNMENT), "size %zu gave %p", size, block);
  CHECK_THAT(malloc_usable_size((void *)block) >= size, "size %zu at %p has %zu usable bytes", size,
             block, malloc_usable_size((void *)block));
}

#endif
