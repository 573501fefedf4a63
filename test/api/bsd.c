// What programs of BSD and macOS bring along: reallocf, reallocarr, vfree, cfree.
#include "blocks.h"

static void reallocf_test(void) {
  void *block = SYMBOL(reallocf)(NULL, 100);
  block_check(block, 100);
  pattern_fill(block, 100, 1);
  block = SYMBOL(reallocf)(block, 100000);
  block_check(block, 100000);
  pattern_check(block, 100, 1);
  free(block);
}

// A failed reallocf frees: otherwise this loop would hold 16 GiB.
static void reallocf_failure_test(void) {
  size_t resident_before = process_resident_bytes();
  for (int i = 0; i < 16384; i++) {
    void *block = malloc(MIB);
    memset(block, 1, i % 16 ? 4096 : MIB);
    CHECK_REFUSED(SYMBOL(reallocf)(block, i % 2 ? SIZE_MAX : SIZE_REFUSED_BY_KERNEL), ENOMEM);
  }
  CHECK_LE(process_resident_bytes(), resident_before + 64 * MIB);
}

static void reallocarr_test(void) {
  unsigned char *block = NULL;
  errno = EXDEV;
  CHECK_EQ(SYMBOL(reallocarr)(&block, 10, 16), 0);
  block_check(block, 160);
  pattern_fill(block, 160, 2);
  CHECK_EQ(SYMBOL(reallocarr)(&block, 100000, 16), 0);
  block_check(block, 1600000);
  pattern_check(block, 160, 2);
  CHECK_EQ(SYMBOL(reallocarr)(&block, 0, 16), 0);
  CHECK(block == NULL);
  CHECK_EQ(SYMBOL(reallocarr)(&block, 1, 0), 0);
  CHECK(block == NULL);
  CHECK_EQ(errno, EXDEV);
}

static void reallocarr_failure_test(void) {
  unsigned char *block = malloc(160), *before = block;
  pattern_fill(block, 160, 3);
  errno = EXDEV;
  CHECK_EQ(SYMBOL(reallocarr)(&block, SIZE_MAX / 2 + 1, 2), EOVERFLOW);
  CHECK_EQ(SYMBOL(reallocarr)(&block, SIZE_REFUSED_BY_KERNEL, 1), ENOMEM);
  CHECK_EQ(SYMBOL(reallocarr)(&block, SIZE_MAX, 1), ENOMEM);
  CHECK_EQ(errno, EXDEV);
  CHECK(block == before);
  pattern_check(block, 160, 3);
  free(block);
}

static void freeing_names_test(void) {
  void (*const functions[])(void *) = {SYMBOL(vfree), SYMBOL(cfree)};
  size_t resident_before = process_resident_bytes();
  for (int f = 0; f < 2; f++) {
    functions[f](NULL);
    for (int i = 0; i < 20000; i++) {
      void *block = f == 0 ? valloc(64 * KIB) : calloc(64, KIB);
      memset(block, 1, 64 * KIB);
      errno = EXDEV;
      functions[f](block);
      CHECK_EQ(errno, EXDEV);
    }
  }
  CHECK_LE(process_resident_bytes(), resident_before + 32 * MIB);
}

int main(void) {
  reallocf_test();
  reallocf_failure_test();
  reallocarr_test();
  reallocarr_failure_test();
  freeing_names_test();
  return 0;
}
