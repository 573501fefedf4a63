#include "slab/sizeclass.h"

#include "slab/secure.h"
#include "state/heap.h"
#include "test.h"

// The class that a search from the smallest on finds.
static unsigned class_by_search(size_t bytes) {
  unsigned class = 0;
  while (tsl_sizeclasses[class].bytes < bytes) class ++;
  return class;
}

static void every_size_has_the_smallest_class(void) {
  for (size_t bytes = 0; bytes <= TSL_SMALL_LIMIT; bytes++) {
    CHECK_EQ(tsl_sizeclass_of(bytes), class_by_search(bytes));
    if (bytes <= TSL_TINY_LIMIT) CHECK_EQ(tsl_sizeclass_of_tiny(bytes), tsl_sizeclass_of(bytes));
    if (bytes > TSL_TINY_LIMIT) CHECK_EQ(tsl_sizeclass_of_medium(bytes), tsl_sizeclass_of(bytes));
  }
}

static void sizes_rise(void) {
  CHECK_EQ(tsl_sizeclasses[0].bytes, TSL_BLOCK_ALIGNMENT);
  for (unsigned class = 1; class < TSL_CLASSES; class ++) {
    CHECK(tsl_sizeclasses[class].bytes > tsl_sizeclasses[class - 1].bytes);
    CHECK_EQ(tsl_sizeclasses[class].bytes % TSL_BLOCK_ALIGNMENT, 0);
  }
  CHECK_EQ(tsl_sizeclasses[TSL_CLASS_OF_1024].bytes, TSL_TINY_LIMIT);
  CHECK_EQ(tsl_sizeclasses[TSL_CLASSES - 1].bytes, TSL_SMALL_LIMIT);
}

// What the header promises: 15 bytes up to 128, a fifth of the block above.
static void waste_is_bounded(void) {
  for (size_t bytes = 1; bytes <= TSL_SMALL_LIMIT; bytes++) {
    size_t block = tsl_sizeclasses[tsl_sizeclass_of(bytes)].bytes;
    CHECK_LE(block - bytes, bytes <= 128 ? TSL_BLOCK_ALIGNMENT - 1 : block / 5);
  }
}

static void slabs_are_powers_of_two(void) {
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    const struct tsl_sizeclass *c = &tsl_sizeclasses[class];
    CHECK_EQ(c->slab_bytes, c->units * TSL_UNIT_BYTES);
    CHECK(tsl_is_power_of_two(c->slab_bytes));
    CHECK_EQ(c->capacity, (c->slab_bytes - TSL_GUARD_BYTES) / c->bytes);
    CHECK_GE(c->capacity, TSL_SECURE ? 7 : 8);
    CHECK_LE(c->capacity, TSL_SLAB_WORDS * 64);
  }
}

static void division_is_exact(void) {
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    const struct tsl_sizeclass *c = &tsl_sizeclasses[class];
    for (size_t offset = 0; offset < c->slab_bytes; offset++) {
      bool exact, whole = offset % c->bytes == 0;
      size_t index = tsl_sizeclass_divide(class, offset, &exact);
      if (index != offset / c->bytes) CHECK_EQ(index, offset / c->bytes);
      if (exact != whole) CHECK_EQ(exact, whole);
    }
  }
  CHECK(tsl_reciprocals[0] == UINT64_C(1) << 60);
}

// What lies far away, or before the beginning, is far away.
static void division_does_not_wrap(void) {
  const size_t far[] = {(size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX - 15, SIZE_MAX};
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    bool exact;
    for (unsigned i = 0; i < 4; i++)
      CHECK_GE(tsl_sizeclass_divide(class, far[i], &exact), 1u << 20);
  }
}

static void codes_fit_into_map_entries(void) {
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    CHECK(class * 2 < TSL_CODE_LARGE);
    CHECK(class * 2 < 1u << TSL_CODE_BITS);
  }
  CHECK(TSL_CODE_LARGE < 1u << TSL_CODE_BITS);
  CHECK(((uint64_t)TSL_MOST_HEAPS << TSL_CODE_BITS) - 1 <= UINT32_MAX);
}

int main(void) {
  RUN(every_size_has_the_smallest_class);
  RUN(sizes_rise);
  RUN(waste_is_bounded);
  RUN(slabs_are_powers_of_two);
  RUN(division_is_exact);
  RUN(division_does_not_wrap);
  RUN(codes_fit_into_map_entries);
  return test_status();
}
