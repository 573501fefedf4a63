// What only the secure build does; other builds leave this file out.
#include "slab/canary.h"

#include <string.h>

#include "memory/growth.h"
#include "os_fake.h"
#include "test.h"

static char *open_block(void) {
  os_fake.limit_bytes = (size_t)1 << 28;
  CHECK(tsl_region_init());
  CHECK(tsl_region_grow(16));
  return (char *)tsl_unit_address(tsl_region.first_unit);
}

static void sizes_are_kept(void) {
  char *block = open_block();
  for (size_t bytes = 1; bytes <= TSL_CANARY_LIMIT; bytes++) {
    unsigned class = tsl_sizeclass_of(bytes + TSL_CANARY_BYTES);
    CHECK(!tsl_canary_has(block));
    CHECK_EQ(tsl_canary_usable(block, class), tsl_sizeclasses[class].bytes);
    tsl_canary_move(block, class, bytes);
    CHECK(tsl_canary_has(block));
    CHECK_EQ(tsl_canary_usable(block, class), bytes);
    CHECK(tsl_canary_is_whole(block, class) && !tsl_canary_is_damaged(block, class));
    CHECK(tsl_canary_take(block));
    CHECK(!tsl_canary_take(block));
  }
}

static void each_byte_counts(void) {
  char *block = open_block();
  unsigned class = TSL_CLASS_OF_128;
  tsl_canary_move(block, class, 100);
  for (unsigned at = 100; at < 128; at++) {
    char before = block[at];
    block[at] = (char)(before == 0);
    CHECK(!tsl_canary_is_whole(block, class) && tsl_canary_is_damaged(block, class));
    block[at] = before;
    CHECK(tsl_canary_is_whole(block, class));
  }
  for (unsigned at = 100; at < 108; at++) CHECK_NE(block[at], 0);
}

// A block that moves in memory, with its canary, has another one there.
static void tags_differ(void) {
  char *block = open_block(), *other = block + 128;
  tsl_canary_move(block, TSL_CLASS_OF_128, 100);
  tsl_canary_move(other, TSL_CLASS_OF_128, 100);
  CHECK(memcmp(block + 100, other + 100, 8) != 0);
}

int main(void) {
  RUN(sizes_are_kept);
  RUN(each_byte_counts);
  RUN(tags_differ);
  return test_status();
}
