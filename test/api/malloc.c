// malloc and free: what every program expects of them.
#include "blocks.h"

static void zero_size_test(void) {
  enum { COUNT = 1000 };
  static void *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = malloc(0);
    block_check(blocks[i], 0);
    for (int other = 0; other < i; other++)
      CHECK_THAT(blocks[other] != blocks[i], "malloc(0) gave %p twice", blocks[i]);
  }
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
}

static void alignment_test(void) {
  for (size_t size = 0; size <= 64 * MIB; size = size_next(size)) {
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
      blocks[i] = malloc(size);
      block_check(blocks[i], size);
    }
    for (int i = 0; i < 3; i++) free(blocks[i]);
  }
}

// Blocks of many sizes live at once: an overlap shows as a damaged pattern.
static void content_test(void) {
  enum { COUNT = 20000 };
  static unsigned char *blocks[COUNT];
  static size_t sizes[COUNT];
  for (int round = 0; round < 3; round++) {
    size_t size = 0;
    for (int i = round; i < COUNT; i += round + 1) {
      if (blocks[i] != NULL) {
        pattern_check(blocks[i], sizes[i], (unsigned)i);
        free(blocks[i]);
      }
      sizes[i] = size = size < 16 * KIB ? size_next(size) : 0;
      blocks[i] = malloc(size);
      block_check(blocks[i], size);
      pattern_fill(blocks[i], size, (unsigned)i);
    }
  }
  for (int i = 0; i < COUNT; i++) {
    if (blocks[i] != NULL) pattern_check(blocks[i], sizes[i], (unsigned)i);
    free(blocks[i]);
  }
}

static void impossible_size_test(void) {
  const size_t sizes[] = {SIZE_REFUSED_BY_KERNEL, PTRDIFF_MAX,    SIZE_IMPOSSIBLE,
                          SIZE_IMPOSSIBLE + 15,   SIZE_MAX - MIB, SIZE_MAX - 4095,
                          SIZE_MAX - 15,          SIZE_MAX - 1,   SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_context_set("size 0x%zx", sizes[i]);
    CHECK_REFUSED(malloc(sizes[i]), ENOMEM);
    CHECK_REFUSED(calloc(1, sizes[i]), ENOMEM);
    CHECK_REFUSED(calloc(sizes[i], 1), ENOMEM);
    CHECK_REFUSED(realloc(NULL, sizes[i]), ENOMEM);
    CHECK_REFUSED(reallocarray(NULL, sizes[i], 1), ENOMEM);
    CHECK_REFUSED(aligned_alloc(64, sizes[i]), ENOMEM);
    CHECK_REFUSED(memalign(4096, sizes[i]), ENOMEM);
    CHECK_REFUSED(valloc(sizes[i]), ENOMEM);
    CHECK_REFUSED(pvalloc(sizes[i]), ENOMEM);
  }
  check_context_set("%s", "");
}

// Large enough that only a lazily committed mapping can serve it.
static void huge_test(void) {
  size_t resident_before = process_resident_bytes();
  unsigned char *block = malloc(2 * GIB);
  block_check(block, 2 * GIB);
  block[0] = block[2 * GIB - 1] = 1;
  CHECK_LE(process_resident_bytes() - resident_before, 16 * MIB);
  free(block);
}

static void free_keeps_errno_test(void) {
  errno = EXDEV;
  free(NULL);
  CHECK_EQ(errno, EXDEV);
  for (size_t size = 0; size <= 256 * MIB; size = size_next(size)) {
    void *block = malloc(size);
    errno = EXDEV;
    free(block);
    CHECK_EQ(errno, EXDEV);
  }
}

// Frees that give memory back to the kernel: errno survives those paths too.
static void mass_free_keeps_errno_test(void) {
  enum { COUNT = 4096 };
  static void *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = malloc(32 * KIB);
    memset(blocks[i], 1, 32 * KIB);
  }
  errno = EXDEV;
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
  CHECK_EQ(errno, EXDEV);
}

// Without reuse this loop would hold 64 GiB.
static void reuse_test(void) {
  size_t resident_before = process_resident_bytes();
  for (int i = 0; i < 100000; i++) {
    size_t size = (size_t)(i % 7 + 1) * 100 * KIB;
    char *block = malloc(size);
    block[0] = block[size - 1] = 1;
    free(block);
  }
  CHECK_LE(process_resident_bytes(), resident_before + 32 * MIB);
}

int main(void) {
  zero_size_test();
  alignment_test();
  content_test();
  impossible_size_test();
  huge_test();
  free_keeps_errno_test();
  mass_free_keeps_errno_test();
  reuse_test();
  return 0;
}
