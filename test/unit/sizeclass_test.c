#include "slab/sizeclass.h"

#include "epoch/heap.h"
#include "slab/secure.h"
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

static void reciprocal_is_exact(void) {
  for (unsigned class = 0; class < TSL_CLASSES; class ++) {
    const struct tsl_sizeclass *c = &tsl_sizeclasses[class];
    for (uint64_t offset = 0; offset < c->slab_bytes; offset++) {
      uint64_t index = offset * c->reciprocal >> 32;
      if (index != offset / c->bytes) CHECK_EQ(index, offset / c->bytes);
    }
  }
  CHECK_EQ(tsl_sizeclasses[0].reciprocal, 1u << 28);
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
  RUN(reciprocal_is_exact);
  RUN(codes_fit_into_map_entries);
  return test_status();
}
