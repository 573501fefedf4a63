// calloc: zeroes whatever lay in the block before, and refuses products that overflow.
#include <pthread.h>

#include "blocks.h"

#define BLOCKS_MAX 64

// More blocks of the small sizes, so that both recycled and fresh ones are met.
static int count_for(size_t size) {
  if (size <= 4 * KIB) return BLOCKS_MAX;
  return size <= 256 * KIB ? 8 : 2;
}

static void zero_check(const unsigned char *block, size_t size) {
  CHECK_THAT(size == 0 || (block[0] == 0 && memcmp(block, block + 1, size - 1) == 0),
             "calloc of %zu bytes at %p is not zero", size, (const void *)block);
}

static void dirty(size_t size) {
  void *blocks[BLOCKS_MAX];
  int count = count_for(size);
  for (int i = 0; i < count; i++) {
    blocks[i] = malloc(size);
    block_check(blocks[i], size);
    memset(blocks[i], 0xa5, malloc_usable_size(blocks[i]));
  }
  for (int i = 0; i < count; i++) free(blocks[i]);
}

static void zeroed_check(size_t members, size_t size) {
  void *blocks[BLOCKS_MAX];
  int count = count_for(members * size);
  for (int i = 0; i < count; i++) {
    blocks[i] = calloc(members, size);
    block_check(blocks[i], members * size);
    zero_check(blocks[i], members * size);
    memset(blocks[i], 0x5a, members * size);
  }
  for (int i = 0; i < count; i++) free(blocks[i]);
}

static void reused_memory_test(void) {
  for (size_t size = 1; size <= 8 * MIB; size = size_next(size)) {
    dirty(size);
    zeroed_check(1, size);
    zeroed_check(size, 1);
  }
  for (size_t size = 64 * MIB; size <= 128 * MIB; size += 32 * MIB) {
    dirty(size);
    zeroed_check(size / 16, 16);
  }
}

static void *free_all(void *blocks) {
  for (int i = 0; i < BLOCKS_MAX; i++) free(((void **)blocks)[i]);
  return NULL;
}

// Blocks that another thread freed come back by another path.
static void freed_elsewhere_test(void) {
  for (size_t size = 1; size <= MIB; size = size * 3 / 2 + 1) {
    void *blocks[BLOCKS_MAX];
    for (int i = 0; i < BLOCKS_MAX; i++) {
      blocks[i] = malloc(size);
      memset(blocks[i], 0xa5, size);
    }
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, free_all, blocks), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    zeroed_check(1, size);
  }
}

// Pages given back to the kernel are zero, the rest is not: calloc has to know which is which.
static void after_trim_test(void) {
  for (size_t size = 16; size <= 4 * MIB; size *= 2) {
    dirty(size);
    malloc_trim(0);
    zeroed_check(1, size);
    zeroed_check(1, size + size / 3);
  }
}

static void overflow_test(void) {
  static const size_t factors[][2] = {{SIZE_MAX, SIZE_MAX},
                                      {SIZE_MAX / 2 + 1, 2},
                                      {2, SIZE_MAX / 2 + 1},
                                      {(size_t)1 << 32, (size_t)1 << 32},
                                      {SIZE_MAX / 16 + 1, 16},
                                      {SIZE_MAX / 3 + 1, 3},
                                      {((size_t)1 << 60) + 1, 16},
                                      {PTRDIFF_MAX, 2},
                                      {SIZE_MAX, 2}};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    CHECK_REFUSED(calloc(factors[i][0], factors[i][1]), ENOMEM);
    CHECK_REFUSED(reallocarray(NULL, factors[i][0], factors[i][1]), ENOMEM);
  }
}

static void zero_size_test(void) {
  void *none = calloc(0, 0), *no_members = calloc(0, 8), *no_size = calloc(8, 0);
  block_check(none, 0);
  block_check(no_members, 0);
  block_check(no_size, 0);
  CHECK(none != no_members && no_members != no_size && none != no_size);
  void *impossible_of_nothing = calloc(0, SIZE_MAX);
  block_check(impossible_of_nothing, 0);
  free(none);
  free(no_members);
  free(no_size);
  free(impossible_of_nothing);
}

int main(void) {
  zero_size_test();
  overflow_test();
  reused_memory_test();
  freed_elsewhere_test();
  after_trim_test();
  return 0;
}
