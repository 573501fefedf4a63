#include "alloc/realloc.h"

#include "alloc/malloc.h"
#include "base/options.h"
#include "capture.h"
#include "memory/growth.h"
#include "memory/segment.h"
#include "os_fake.h"
#include "pattern.h"
#include "state.h"
#include "takes.h"

enum { KIB = 1 << 10, MIB = 1 << 20, STEPS = 6000, BLOCKS = 50 };

static void *alloc(size_t bytes, unsigned seed) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  pattern_write(block, bytes, seed);
  return block;
}

static void from_any_size_to_any_other(void) {
  static const size_t sizes[] = {1,         16,      17,          100,      1000,
                                 1024,      1025,    5000,        32 * KIB, 32 * KIB + 1,
                                 100 * KIB, 2 * MIB, 2 * MIB + 1, 5 * MIB,  130 * MIB};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  for (size_t i = 0; i < COUNT * COUNT; i++) {
    size_t from = sizes[i / COUNT], to = sizes[i % COUNT];
    check_context_set("from %zu to %zu", from, to);
    char *block = tsl_realloc(alloc(from, 7), to);
    CHECK(block != NULL);
    CHECK(pattern_is(block, from, 7, from < to ? from : to));
    CHECK_GE(tsl_usable(block), to);
    pattern_write(block, to, 8);
    tsl_fast_free(block);
  }
  tsl_trim(0);
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

static void null_allocates(void) {
  void *block = tsl_realloc(NULL, 100);
  CHECK(block != NULL);
  CHECK_EQ(tsl_usable(block), tsl_good_size(100));
}

// A block stays where it is while it does not waste half of itself.
static void stays_in_place(void) {
  void *block = alloc(1000, 1);
  CHECK(tsl_realloc(block, tsl_usable(block)) == block);
  CHECK(tsl_realloc(block, takes(1000) / 2) == block);
  CHECK(tsl_realloc(block, takes(1000) / 2 - 16) != block);
  void *large = alloc(10 * MIB, 1);
  CHECK(tsl_region_grow(64));
  CHECK(tsl_realloc(large, 9 * MIB) == large);
  CHECK(tsl_realloc(large, 12 * MIB) == large);
  CHECK(tsl_realloc(large, 40 * KIB) == large);
  CHECK_EQ(tsl_usable(large), TSL_UNIT_BYTES);
  CHECK(pattern_is(large, 10 * MIB, 1, 40 * KIB));
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], 0);
  state_check();
}

// Large blocks move by moving pages, and where the system cannot, by copying.
static void large_blocks_move(void) {
  for (int refused = 0; refused <= 1; refused++) {
    char *block = alloc(4 * MIB, 3), *next = alloc(64 * KIB, 4);
    if (!TSL_SECURE) CHECK(next == block + 4 * MIB);
    if (refused) os_fake_fail_next(OS_FAKE_MOVE);
    uint64_t moves = os_fake.calls[OS_FAKE_MOVE];
    char *moved = tsl_realloc(block, 20 * MIB);
    CHECK(moved != NULL && moved != block);
    CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], moves + 1);
    CHECK(pattern_is(moved, 4 * MIB, 3, 4 * MIB));
    pattern_write(moved, 20 * MIB, 5);
    CHECK(pattern_is(next, 64 * KIB, 4, 64 * KIB));
    state_check();
    tsl_fast_free(moved);
    tsl_fast_free(next);
  }
}

// The block behind the one that grows stays its owner's: none of it comes along.
static void nothing_of_the_neighbour_is_copied(void) {
  char *block = alloc(16 * KIB, 1), *next = alloc(16 * KIB, 2);
  CHECK(next == block + 16 * KIB);
  memset(next, 0x77, 16 * KIB);
  char *grown = tsl_realloc(block, 100 * KIB);
  for (size_t i = 16 * KIB; i < 32 * KIB; i++) {
    if (grown[i] == 0x77) CHECK_NE(grown[i], 0x77);
  }
  CHECK(pattern_is(grown, 16 * KIB, 1, 16 * KIB));
}

static void impossible_sizes_leave_the_block(void) {
  static const size_t sizes[] = {10, 5000, 100 * KIB, 5 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *block = alloc(sizes[i], 9);
    CHECK_REFUSED(tsl_realloc(block, SIZE_MAX), ENOMEM);
    CHECK_REFUSED(tsl_realloc(block, (size_t)PTRDIFF_MAX + 1), ENOMEM);
    CHECK_REFUSED(tsl_realloc(block, PTRDIFF_MAX), ENOMEM);
    CHECK_REFUSED(tsl_realloc(block, tsl_region.span_bytes), ENOMEM);
    CHECK(pattern_is(block, sizes[i], 9, sizes[i]));
    CHECK_EQ(tsl_usable(block), tsl_good_size(sizes[i]));
  }
  state_check();
}

static void refused_memory_leaves_the_block(void) {
  void *tiny = alloc(100, 1), *large = alloc(3 * MIB, 2);
  while (tsl_fast_malloc(MIB) != NULL) continue;
  CHECK_REFUSED(tsl_realloc(tiny, 2 * MIB), ENOMEM);
  CHECK_REFUSED(tsl_realloc(large, 9 * MIB), ENOMEM);
  CHECK(pattern_is(tiny, 100, 1, 100));
  CHECK(pattern_is(large, 3 * MIB, 2, 3 * MIB));
  CHECK_EQ(tsl_usable(large), 3 * MIB);
  state_check();
}

static void success_keeps_errno(void) {
  void *block = alloc(4 * MIB, 1), *next = alloc(64 * KIB, 1);
  errno = EDOM;
  block = tsl_realloc(block, 8 * MIB);
  os_fake_fail_next(OS_FAKE_MOVE);
  CHECK(tsl_realloc(tsl_realloc(block, 16 * MIB), 10) != NULL);
  CHECK(tsl_realloc(next, 100) != NULL);
  CHECK_EQ(errno, EDOM);
}

static void foreign_pointers_are_named(void) {
  int local = 0;
  char *large = alloc(MIB, 1);
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  void *result = tsl_realloc(&local, 100), *inside = tsl_realloc(large + TSL_UNIT_BYTES, 100);
  const char *said = capture_end();
  CHECK(result == NULL && inside == NULL);
  CHECK_EQ(capture_lines(said), 2);
  CHECK(strstr(said, "not a block of this allocator") != NULL);
}

static void good_sizes(void) {
  CHECK_EQ(tsl_good_size(0), TSL_SECURE ? 0 : 16);
  CHECK_EQ(tsl_good_size(16), 16);
  CHECK_EQ(tsl_good_size(17), TSL_SECURE ? 17 : 32);
  CHECK_EQ(tsl_good_size(32 * KIB), TSL_SECURE ? 64 * KIB : 32 * KIB);
  CHECK_EQ(tsl_good_size(32 * KIB + 1), 64 * KIB);
  CHECK_EQ(tsl_good_size(MIB), MIB);
  CHECK_EQ(tsl_good_size((size_t)PTRDIFF_MAX + 1), 0);
  CHECK_EQ(tsl_good_size(SIZE_MAX), 0);
}

static void calloc_gives_zeros(void) {
  static const size_t sizes[] = {0, 1, 100, 1024, 5000, 32 * KIB, 33 * KIB, MIB, 5 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int again = 0; again < 70; again++) {
      char *block = tsl_calloc(1, sizes[i]);
      CHECK(block != NULL);
      CHECK(pattern_is_zero(block, sizes[i]));
      pattern_write(block, sizes[i], 0xff);
      if (again % 2 == 0) tsl_fast_free(block);
    }
  }
  CHECK(tsl_calloc(0, 10) != NULL);
  CHECK(tsl_calloc(10, 0) != NULL);
}

static void calloc_overflow(void) {
  CHECK_REFUSED(tsl_calloc(SIZE_MAX, 2), ENOMEM);
  CHECK_REFUSED(tsl_calloc(2, SIZE_MAX), ENOMEM);
  CHECK_REFUSED(tsl_calloc((size_t)1 << 32, (size_t)1 << 32), ENOMEM);
  CHECK_REFUSED(tsl_calloc((size_t)1 << 32, (size_t)1 << 31), ENOMEM);
  CHECK(tsl_calloc(3, 5) != NULL);
}

static struct {
  void *address;
  size_t bytes;
  unsigned seed;
} blocks[BLOCKS];

static void random_step(uint64_t *seed) {
  size_t i = test_random_below(seed, BLOCKS);
  size_t bytes = 1 + (size_t)(test_random(seed) % ((uint64_t)1 << test_random_below(seed, 24)));
  size_t kept = bytes < blocks[i].bytes ? bytes : blocks[i].bytes;
  if (test_random_below(seed, 4) == 0) os_fake_fail_next(OS_FAKE_FALLIBLE);
  void *block = tsl_realloc(blocks[i].address, bytes);
  if (block == NULL) {
    CHECK_EQ(errno, ENOMEM);
    CHECK(blocks[i].address == NULL ||
          pattern_is(blocks[i].address, blocks[i].bytes, blocks[i].seed, blocks[i].bytes));
    return;
  }
  CHECK(pattern_is(block, blocks[i].bytes, blocks[i].seed, kept));
  blocks[i].address = block;
  blocks[i].bytes = bytes;
  blocks[i].seed = (unsigned)test_random(seed);
  pattern_write(block, bytes, blocks[i].seed);
}

static void random_operations(void) {
  uint64_t seed = 4;
  for (int step = 0; step < STEPS; step++) {
    check_context_set("step %d", step);
    random_step(&seed);
    os_fake.now_ms++;
    if (step % 200 == 0) state_check();
  }
  for (int i = 0; i < BLOCKS; i++) tsl_fast_free(blocks[i].address);
  os_fake_recover();
  tsl_trim(0);
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void trim_gives_back_and_keeps(void) {
  CHECK(!tsl_trim(0));
  tsl_fast_free(alloc(5 * MIB, 1));
  CHECK(!tsl_trim(5 * MIB));
  CHECK(tsl_trim(2 * MIB));
  CHECK_LE(3 * MIB, os_fake.purged_bytes);
  CHECK_LE(os_fake.purged_bytes, 5 * MIB);  // a huge page goes back whole
  CHECK(tsl_trim(0));
  CHECK_EQ(os_fake.purged_bytes, 5 * MIB);
  CHECK(!tsl_trim(0));
}

int main(void) {
  RUN(from_any_size_to_any_other);
  RUN(null_allocates);
  RUN(stays_in_place);
  RUN(large_blocks_move);
  RUN_UNLESS_SECURE(nothing_of_the_neighbour_is_copied);
  RUN(impossible_sizes_leave_the_block);
  RUN(refused_memory_leaves_the_block);
  RUN(success_keeps_errno);
  RUN(foreign_pointers_are_named);
  RUN(good_sizes);
  RUN(calloc_gives_zeros);
  RUN(calloc_overflow);
  RUN(random_operations);
  RUN_UNLESS_SECURE(trim_gives_back_and_keeps);
  return test_status();
}
