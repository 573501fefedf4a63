// aligned_alloc, memalign, posix_memalign, valloc, pvalloc: every power of two to 1 GiB, and every
// refusal.
#include "blocks.h"

static void aligned_check(void *block, size_t alignment, size_t size) {
  check_context_set("alignment %zu, size %zu", alignment, size);
  CHECK(block != NULL);
  CHECK_THAT(is_aligned(block, alignment), "%p", block);
  block_check(block, size);
}

// Both ends of a large block are enough: touching all of it would cost gigabytes.
static void ends_write(unsigned char *block, size_t size) {
  size_t part = size < 64 * KIB ? size : 64 * KIB;
  memset(block, 0x11, part);
  memset(block + size - part, 0x22, part);
}

static void three_ways_check(size_t alignment, size_t size) {
  void *blocks[3];
  check_context_set("alignment %zu, size %zu", alignment, size);
  blocks[0] = aligned_alloc(alignment, size);
  blocks[1] = memalign(alignment, size);
  CHECK_EQ(posix_memalign(&blocks[2], alignment, size), 0);
  for (int i = 0; i < 3; i++) {
    aligned_check(blocks[i], alignment, size);
    ends_write(blocks[i], size);
  }
  for (int i = 0; i < 3; i++) free(blocks[i]);
}

static void powers_of_two_test(void) {
  static const size_t sizes[] = {0, 1, 16, 17, 100, 1000, 4096, 5000, 70000, MIB, 40 * MIB};
  for (size_t alignment = sizeof(void *); alignment <= GIB; alignment *= 2)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) three_ways_check(alignment, sizes[i]);
}

// Below the size of a pointer only aligned_alloc and memalign are asked.
static void small_alignment_test(void) {
  for (size_t alignment = 1; alignment < sizeof(void *); alignment *= 2) {
    void *block = aligned_alloc(alignment, 100), *other = memalign(alignment, 100);
    aligned_check(block, alignment, 100);
    aligned_check(other, alignment, 100);
    free(block);
    free(other);
  }
}

static void many_sizes_test(void) {
  for (size_t alignment = 16; alignment <= 64 * KIB; alignment *= 2) {
    for (size_t size = 0; size <= 256 * KIB; size = size * 9 / 8 + 1) {
      unsigned char *block = aligned_alloc(alignment, size);
      aligned_check(block, alignment, size);
      memset(block, 0x33, malloc_usable_size(block));
      free(block);
    }
  }
}

// Aligned blocks among plain ones: an overlap shows as a damaged pattern.
static void mixed_test(void) {
  enum { COUNT = 4000 };
  static void *blocks[COUNT];
  static size_t sizes[COUNT];
  for (int i = 0; i < COUNT; i++) {
    sizes[i] = (size_t)(i * 37 % 3000);
    blocks[i] = i % 2 ? aligned_alloc((size_t)16 << (i % 9), sizes[i]) : malloc(sizes[i]);
    block_check(blocks[i], sizes[i]);
    pattern_fill(blocks[i], sizes[i], (unsigned)i);
  }
  for (int i = 0; i < COUNT; i++) {
    pattern_check(blocks[i], sizes[i], (unsigned)i);
    free(blocks[i]);
  }
}

// A gigabyte of alignment is address space, not memory; and the address space comes back.
static void gigabyte_alignment_test(void) {
  enum { COUNT = 8 };
  void *blocks[COUNT];
  size_t resident_before = process_resident_bytes(), mapped_before = process_mapped_bytes();
  for (int round = 0; round < 16; round++) {
    for (int i = 0; i < COUNT; i++) {
      blocks[i] = aligned_alloc(GIB, 100);
      aligned_check(blocks[i], GIB, 100);
      memset(blocks[i], 0x44, 100);
    }
    CHECK_LE(process_resident_bytes() - resident_before, 4 * MIB);
    for (int i = 0; i < COUNT; i++) free(blocks[i]);
  }
  CHECK_LE(process_mapped_bytes(), mapped_before + COUNT * GIB + 256 * MIB);
}

static void posix_refusal_check(size_t alignment, size_t size, int error) {
  check_context_set("posix_memalign, alignment %zu, size 0x%zx", alignment, size);
  void *untouched = &untouched, *block = untouched;
  errno = EXDEV;
  CHECK_EQ(posix_memalign(&block, alignment, size), error);
  CHECK_EQ(errno, EXDEV);
  CHECK(block == untouched);
}

static void posix_refusal_test(void) {
  static const size_t bad[] = {0, 1, 2, 4, 3, 5, 7, 12, 24, 48, 100, 4095, 4097, SIZE_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    posix_refusal_check(bad[i], 64, EINVAL);
    posix_refusal_check(bad[i], 0, EINVAL);
  }
  for (size_t alignment = 8; alignment <= GIB; alignment *= 2) {
    posix_refusal_check(alignment, SIZE_MAX, ENOMEM);
    posix_refusal_check(alignment, SIZE_MAX - alignment + 1, ENOMEM);
    posix_refusal_check(alignment, SIZE_IMPOSSIBLE, ENOMEM);
    posix_refusal_check(alignment, SIZE_REFUSED_BY_KERNEL, ENOMEM);
  }
  check_context_set("%s", "");
}

static void posix_success_keeps_errno_test(void) {
  for (size_t size = 1; size <= 64 * MIB; size *= 4) {
    void *block;
    errno = EXDEV;
    CHECK_EQ(posix_memalign(&block, 64, size), 0);
    CHECK_EQ(errno, EXDEV);
    free(block);
  }
}

// Larger than any address space could promise: a refusal or a correct block, nothing else.
static void vast_alignment_test(void) {
  for (int log2 = 31; log2 < 64; log2++) {
    size_t alignment = (size_t)1 << log2;
    void *block = NULL;
    int error = posix_memalign(&block, alignment, 1);
    CHECK(error == 0 || error == ENOMEM || error == EINVAL);
    if (error == 0) aligned_check(block, alignment, 1);
    free(block);
    free(aligned_alloc(alignment, 1));
    free(memalign(alignment, 1));
  }
}

// The C library rounds up what is no power of two, the standard allows a refusal.
static void odd_alignment_test(void) {
  static const size_t odd[] = {3, 5, 7, 12, 24, 48, 100, 1000, 4097};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    size_t above = 1;
    while (above < odd[i]) above *= 2;
    void *(*const functions[])(size_t, size_t) = {aligned_alloc, memalign};
    for (int f = 0; f < 2; f++) {
      errno = 0;
      void *block = functions[f](odd[i], 200);
      if (block == NULL) CHECK_EQ(errno, EINVAL);
      if (block != NULL) aligned_check(block, above, 200);
      free(block);
    }
  }
}

static void whole_pages_test(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t size = 0; size <= 2 * MIB; size = size * 2 + 1) {
    void *block = valloc(size), *pages = pvalloc(size);
    size_t rounded = (size + page - 1) / page * page;
    aligned_check(block, page, size);
    aligned_check(pages, page, rounded);
    memset(pages, 0x55, rounded);
    free(block);
    free(pages);
  }
  CHECK_REFUSED(pvalloc(SIZE_MAX), ENOMEM);
  CHECK_REFUSED(pvalloc(SIZE_MAX - page + 2), ENOMEM);
}

int main(void) {
  powers_of_two_test();
  small_alignment_test();
  many_sizes_test();
  mixed_test();
  gigabyte_alignment_test();
  posix_refusal_test();
  posix_success_keeps_errno_test();
  vast_alignment_test();
  odd_alignment_test();
  whole_pages_test();
  return 0;
}
