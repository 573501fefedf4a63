#include "state/quarantine.h"

#include "alloc/malloc.h"
#include "homes.h"

static struct tsl_heap *mine, *other;
static void *blocks[TSL_QUARANTINE_BLOCKS + 1];

static void open_homes(void) {
  homes_open((size_t)1 << 28, &mine, &other);
  for (unsigned i = 0; i <= TSL_QUARANTINE_BLOCKS; i++)
    blocks[i] = tsl_fast_malloc(i == 0 ? 5000 : 90);
}

static void *put(unsigned i) {
  return tsl_quarantine_swap(mine, tsl_sizeclass_of(i == 0 ? 5000 : 96), blocks[i]);
}

static void blocks_wait_for_their_turn(void) {
  open_homes();
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) CHECK(put(i) == NULL);
  CHECK(tsl_quarantine_has(blocks[0]));
  CHECK_EQ(tsl_quarantine_blocks(mine, tsl_sizeclass_of(96)), TSL_QUARANTINE_BLOCKS - 1);
  CHECK(put(TSL_QUARANTINE_BLOCKS) == blocks[0]);
  CHECK(!tsl_quarantine_has(blocks[0]));
  CHECK_EQ(tsl_quarantine_blocks(mine, tsl_sizeclass_of(96)), TSL_QUARANTINE_BLOCKS);
  CHECK_EQ(tsl_quarantine_blocks(mine, tsl_sizeclass_of(5000)), 0);
  CHECK_EQ(tsl_quarantine_blocks(other, tsl_sizeclass_of(96)), 0);
}

static void all_blocks_can_be_taken(void) {
  open_homes();
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) put(i);
  for (unsigned i = 0; i < TSL_QUARANTINE_BLOCKS; i++) {
    void *block = tsl_quarantine_take(mine);
    CHECK(block != NULL && !tsl_quarantine_has(block));
  }
  CHECK(tsl_quarantine_take(mine) == NULL);
}

static void only_the_hardened_build_keeps_freed_blocks_in_it(void) {
  open_homes();
  tsl_fast_free(blocks[1]);
  CHECK_EQ(tsl_quarantine_blocks(mine, tsl_sizeclass_of(96)), TSL_SECURE);
  CHECK(tsl_quarantine_take(mine) == (TSL_SECURE ? blocks[1] : NULL));
}

int main(void) {
  if (TSL_SECURE) RUN(blocks_wait_for_their_turn);
  if (TSL_SECURE) RUN(all_blocks_can_be_taken);
  RUN(only_the_hardened_build_keeps_freed_blocks_in_it);
  return test_status();
}
