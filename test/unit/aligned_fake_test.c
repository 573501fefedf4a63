#include "alloc/aligned.h"

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "os_fake.h"
#include "pattern.h"
#include "state.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static void every_alignment_and_size(void) {
  for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
    for (size_t bytes = 0; bytes <= 300 * KIB; bytes += bytes / 2 + 1) {
      check_context_set("%zu bytes at multiples of %zu", bytes, alignment);
      void *block = tsl_aligned(alignment, bytes);
      CHECK(block != NULL);
      CHECK_EQ((uintptr_t)block & (alignment - 1), 0);
      CHECK_GE(tsl_usable(block), bytes);
      pattern_write(block, bytes, 1);
      tsl_fast_free(block);
    }
  }
  state_check();
}

// Several at a time: not only the first block of a slab.
static void many_of_a_kind(void) {
  for (size_t alignment = 8; alignment <= 8192; alignment *= 2) {
    for (int i = 0; i < 100; i++) {
      void *block = tsl_aligned(alignment, 40);
      CHECK(block != NULL);
      CHECK_EQ((uintptr_t)block & (alignment - 1), 0);
    }
  }
  state_check();
}

static void up_to_a_page_from_slabs(void) {
  for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
    CHECK_LE(tsl_usable(tsl_aligned(alignment, alignment)), alignment);
    CHECK_LE(tsl_usable(tsl_aligned(alignment, 1)), alignment);
  }
}

static void size_zero_is_a_block(void) {
  for (size_t alignment = 1; alignment <= MIB; alignment *= 2) {
    void *one = tsl_aligned(alignment, 0), *two = tsl_aligned(alignment, 0);
    CHECK(one != NULL && two != NULL && one != two);
    tsl_fast_free(one);
    tsl_fast_free(two);
  }
}

static void impossible(void) {
  CHECK_REFUSED(tsl_aligned(16, SIZE_MAX), ENOMEM);
  CHECK_REFUSED(tsl_aligned(4096, (size_t)PTRDIFF_MAX + 1), ENOMEM);
  CHECK_REFUSED(tsl_aligned((size_t)1 << 63, 1), ENOMEM);
  CHECK_REFUSED(tsl_aligned((size_t)1 << 62, 1), ENOMEM);
  CHECK_REFUSED(tsl_aligned((size_t)1 << 62, PTRDIFF_MAX), ENOMEM);
  CHECK_REFUSED(tsl_aligned(tsl_region.span_bytes, 1), ENOMEM);
  CHECK_LE(tsl_region.units, TSL_GROWTH_UNITS * 2);
  CHECK(tsl_aligned(4096, 1) != NULL);
  state_check();
}

static void reallocated(void) {
  char *block = tsl_aligned(4096, 5000);
  pattern_write(block, 5000, 2);
  block = tsl_realloc(block, 50000);
  CHECK(pattern_is(block, 5000, 2, 5000));
  block = tsl_realloc(tsl_aligned(MIB, 3 * MIB), 10);
  CHECK(block != NULL);
  tsl_fast_free(block);
  state_check();
}

int main(void) {
  RUN(every_alignment_and_size);
  RUN(many_of_a_kind);
  RUN(up_to_a_page_from_slabs);
  RUN(size_zero_is_a_block);
  RUN(impossible);
  RUN(reallocated);
  return test_status();
}
