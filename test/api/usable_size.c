// malloc_usable_size, malloc_size, malloc_good_size: honest, stable, and writable to the last byte.
#include "blocks.h"

static void null_test(void) {
  CHECK_EQ(malloc_usable_size(NULL), 0);
  CHECK_EQ(SYMBOL(malloc_size)(NULL), 0);
}

// Three neighbours written to their last usable byte: none may reach into the next.
static void whole_area_test(void) {
  for (size_t size = 0; size <= 8 * MIB; size = size_next(size)) {
    void *blocks[3];
    for (unsigned i = 0; i < 3; i++) {
      blocks[i] = malloc(size);
      block_check(blocks[i], size);
      pattern_fill(blocks[i], malloc_usable_size(blocks[i]), i);
    }
    for (unsigned i = 0; i < 3; i++) {
      pattern_check(blocks[i], malloc_usable_size(blocks[i]), i);
      free(blocks[i]);
    }
  }
}

static void aligned_area_test(void) {
  for (size_t alignment = 32; alignment <= 64 * KIB; alignment *= 2) {
    for (size_t size = 1; size <= MIB; size = size * 3 + 1) {
      void *blocks[2];
      for (unsigned i = 0; i < 2; i++) {
        blocks[i] = aligned_alloc(alignment, size);
        block_check(blocks[i], size);
        pattern_fill(blocks[i], malloc_usable_size(blocks[i]), i);
      }
      for (unsigned i = 0; i < 2; i++) {
        pattern_check(blocks[i], malloc_usable_size(blocks[i]), i);
        free(blocks[i]);
      }
    }
  }
}

static void stable_test(void) {
  enum { COUNT = 2000 };
  static void *blocks[COUNT];
  static size_t usable[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = malloc(i * 13);
    usable[i] = malloc_usable_size(blocks[i]);
  }
  for (size_t i = 0; i < COUNT; i += 2) free(blocks[i]);
  for (size_t i = 0; i < COUNT; i += 2) blocks[i] = malloc(i * 7);
  for (size_t i = 1; i < COUNT; i += 2) CHECK_EQ(malloc_usable_size(blocks[i]), usable[i]);
  for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
}

static void good_size_test(void) {
  for (size_t size = 0; size <= 256 * MIB; size = size_next(size)) {
    check_context_set("size %zu", size);
    void *block = malloc(size);
    size_t good = SYMBOL(malloc_good_size)(size);
    CHECK_EQ(good, malloc_usable_size(block));
    CHECK_EQ(SYMBOL(malloc_size)(block), malloc_usable_size(block));
    CHECK_GE(good, size);
    free(block);
    void *filled = malloc(good);
    CHECK_EQ(malloc_usable_size(filled), good);
    free(filled);
  }
}

// No block can be so large: 0 says so, and no sum may wrap around to a small size.
static void good_size_of_impossible_test(void) {
  const size_t sizes[] = {SIZE_IMPOSSIBLE, SIZE_MAX - 4096, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    CHECK_EQ(SYMBOL(malloc_good_size)(sizes[i]), 0);
}

int main(void) {
  null_test();
  whole_area_test();
  aligned_area_test();
  stable_test();
  good_size_test();
  good_size_of_impossible_test();
  return 0;
}
