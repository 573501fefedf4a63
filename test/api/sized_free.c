// free_sized and free_aligned_sized of C23: free, told again what was asked for.
#include "blocks.h"

static void plain_test(void) {
  for (size_t size = 0; size <= 64 * MIB; size = size_next(size)) {
    void *blocks[3] = {malloc(size), calloc(1, size),
                       realloc(malloc(size / 2 + 1), size ? size : 1)};
    for (int i = 0; i < 2; i++) SYMBOL(free_sized)(blocks[i], size);
    SYMBOL(free_sized)(blocks[2], size ? size : 1);
  }
}

static void aligned_test(void) {
  for (size_t alignment = 8; alignment <= 2 * MIB; alignment *= 2) {
    for (size_t size = 0; size <= 4 * MIB; size = size * 2 + alignment) {
      void *block = aligned_alloc(alignment, size);
      CHECK_THAT(block != NULL && is_aligned(block, alignment), "alignment %zu, size %zu gave %p",
                 alignment, size, block);
      SYMBOL(free_aligned_sized)(block, alignment, size);
    }
  }
}

static void null_and_errno_test(void) {
  errno = EXDEV;
  SYMBOL(free_sized)(NULL, 0);
  SYMBOL(free_sized)(NULL, 64);
  SYMBOL(free_aligned_sized)(NULL, 64, 64);
  for (size_t size = 1; size <= 256 * MIB; size *= 8) {
    void *block = malloc(size);
    void *aligned = aligned_alloc(4096, size);
    errno = EXDEV;
    SYMBOL(free_sized)(block, size);
    SYMBOL(free_aligned_sized)(aligned, 4096, size);
    CHECK_EQ(errno, EXDEV);
  }
}

// The block must really be free afterwards.
static void reuse_test(void) {
  size_t resident_before = process_resident_bytes();
  for (int i = 0; i < 20000; i++) {
    void *block = malloc(64 * KIB), *aligned = aligned_alloc(4096, 64 * KIB);
    memset(block, 1, 64 * KIB);
    memset(aligned, 1, 64 * KIB);
    SYMBOL(free_sized)(block, 64 * KIB);
    SYMBOL(free_aligned_sized)(aligned, 4096, 64 * KIB);
  }
  CHECK_LE(process_resident_bytes(), resident_before + 32 * MIB);
}

int main(void) {
  plain_test();
  aligned_test();
  null_and_errno_test();
  reuse_test();
  return 0;
}
