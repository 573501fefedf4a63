// realloc and reallocarray: content kept at every size, the old block kept at every failure.
#include "blocks.h"

static void null_test(void) {
  for (size_t size = 0; size <= MIB; size = size_next(size)) {
    void *block = realloc(NULL, size);
    block_check(block, size);
    free(block);
  }
}

// As the C library has it: a size of zero frees. Otherwise this loop would hold more than a
// gigabyte.
static void zero_test(void) {
  size_t resident_before = process_resident_bytes();
  for (int i = 0; i < 20000; i++) {
    void *block = malloc(64 * KIB);
    memset(block, 1, 64 * KIB);
    CHECK(realloc(block, 0) == NULL);
  }
  CHECK_LE(process_resident_bytes(), resident_before + 64 * MIB);
}

static void resize_check(size_t from, size_t to) {
  check_context_set("from %zu to %zu", from, to);
  void *block = malloc(from);
  pattern_fill(block, from, 1);
  block = realloc(block, to);
  block_check(block, to);
  pattern_check(block, from < to ? from : to, 1);
  pattern_fill(block, to, 2);
  pattern_check(block, to, 2);
  free(block);
}

static void content_test(void) {
  for (size_t from = 0; from <= 96 * KIB; from = from * 5 / 4 + 1)
    for (size_t to = 0; to <= 96 * KIB; to = to * 5 / 4 + 1) resize_check(from, to == 0 ? 1 : to);
  for (size_t from = 128 * KIB; from <= 6 * MIB; from = from * 2 + 4096)
    for (size_t to = 100 * KIB; to <= 6 * MIB; to = to * 2 + 100) resize_check(from, to);
}

// One mark a page: enough to see a lost, shifted or zeroed page of a huge block.
static void pages_mark(unsigned char *block, size_t from, size_t to) {
  for (size_t at = (from + 4095) / 4096 * 4096; at + sizeof(size_t) <= to; at += 4096)
    memcpy(block + at, &at, sizeof at);
}

static void pages_check(const unsigned char *block, size_t to) {
  for (size_t at = 0; at + sizeof(size_t) <= to; at += 4096)
    CHECK_THAT(memcmp(block + at, &at, sizeof at) == 0, "page at offset %zu", at);
}

static void huge_test(void) {
  static const size_t sizes[] = {MIB,       3 * MIB,  20 * MIB,  33 * MIB, 160 * MIB, 256 * MIB,
                                 255 * MIB, 40 * MIB, 200 * MIB, 17 * MIB, 2 * MIB,   100};
  size_t valid = 0;
  unsigned char *block = NULL;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_context_set("step %zu to %zu", i, sizes[i]);
    block = realloc(block, sizes[i]);
    block_check(block, sizes[i]);
    if (valid > sizes[i]) valid = sizes[i];
    pages_check(block, valid);
    pages_mark(block, valid, sizes[i]);
    valid = sizes[i];
  }
  free(block);
}

// A buffer that grows by small steps, as read loops do it.
static void growing_test(void) {
  unsigned char *block = NULL;
  for (size_t size = 1; size <= 4 * MIB; size += 1 + size / 37) {
    check_context_set("growing to %zu", size);
    block = realloc(block, size);
    block_check(block, size);
    block[size - 1] = (unsigned char)size;
    block[0] = 77;
    CHECK_EQ(block[0], 77);
  }
  free(block);
}

static void in_place_test(void) {
  for (size_t size = 1; size <= 64 * MIB; size = size * 3 / 2 + 1) {
    check_context_set("size %zu", size);
    void *block = malloc(size);
    CHECK(realloc(block, malloc_usable_size(block)) == block);
    CHECK(realloc(block, size) == block);
    free(block);
  }
}

static void failure_test(void) {
  for (size_t size = 1; size <= 64 * MIB; size = size * 3 + 5) {
    check_context_set("block of %zu", size);
    unsigned char *block = malloc(size);
    pattern_fill(block, size, 3);
    size_t usable = malloc_usable_size(block);
    CHECK_REFUSED(realloc(block, SIZE_MAX), ENOMEM);
    pattern_check(block, size, 3);
    CHECK_REFUSED(realloc(block, SIZE_IMPOSSIBLE), ENOMEM);
    CHECK_REFUSED(realloc(block, SIZE_REFUSED_BY_KERNEL), ENOMEM);
    CHECK_REFUSED(reallocarray(block, SIZE_MAX / 2 + 1, 2), ENOMEM);
    CHECK_REFUSED(reallocarray(block, (size_t)1 << 32, (size_t)1 << 32), ENOMEM);
    CHECK_REFUSED(reallocarray(block, SIZE_REFUSED_BY_KERNEL / 16, 16), ENOMEM);
    CHECK_EQ(malloc_usable_size(block), usable);
    pattern_check(block, size, 3);
    free(block);
  }
}

static void array_test(void) {
  for (size_t count = 1; count <= 20000; count = count * 2 + 1) {
    void *block = reallocarray(NULL, count, 24);
    block_check(block, count * 24);
    pattern_fill(block, count * 24, 4);
    block = reallocarray(block, count * 2, 24);
    block_check(block, count * 48);
    pattern_check(block, count * 24, 4);
    free(block);
  }
}

static void aligned_block_test(void) {
  for (size_t alignment = 32; alignment <= MIB; alignment *= 2) {
    for (size_t size = 1; size <= 256 * KIB; size = size * 4 + 1) {
      check_context_set("alignment %zu, size %zu", alignment, size);
      void *block = aligned_alloc(alignment, size);
      pattern_fill(block, size, 5);
      block = realloc(block, size * 2);
      block_check(block, size * 2);
      pattern_check(block, size, 5);
      block = realloc(block, 1 + size / 4);
      block_check(block, 1 + size / 4);
      pattern_check(block, 1 + size / 4, 5);
      free(block);
    }
  }
}

int main(void) {
  null_test();
  zero_test();
  content_test();
  huge_test();
  growing_test();
  in_place_test();
  failure_test();
  array_test();
  aligned_block_test();
  return 0;
}
