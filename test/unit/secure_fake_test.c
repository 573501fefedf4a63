// What only the secure build does; other builds leave this file out.
#include "slab/secure.h"

#include "alloc/entry.h"
#include "alloc/malloc.h"
#include "base/options.h"
#include "capture.h"
#include "epoch/pool.h"
#include "os_fake.h"
#include "state.h"

enum { BLOCKS = 200, BYTES = 96 };

static void *blocks[BLOCKS];

static void take_blocks(void) {
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = tsl_fast_malloc(BYTES);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], 0x5a, BYTES);
  }
}

// Whether `call` reports `text`, and only that.
static bool reports(void (*call)(void), const char *text) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  call();
  const char *said = capture_end();
  return capture_lines(said) == 1 && strstr(said, text) != NULL;
}

static void free_first(void) { tsl_fast_free(blocks[0]); }
static void free_inside(void) { tsl_fast_free((char *)blocks[1] + 16); }
static void free_as_smaller(void) { tsl_fast_free_sized(blocks[2], 16); }
static void free_as_larger(void) { tsl_fast_free_sized(blocks[3], 500); }

static void every_double_free_is_reported(void) {
  take_blocks();
  free_first();
  for (int i = 10; i < BLOCKS; i++) tsl_fast_free(blocks[i]);
  CHECK(reports(free_first, "free already"));
  state_check();
}

static void double_free_in_the_quarantine_is_reported(void) {
  take_blocks();
  free_first();
  CHECK(reports(free_first, "free already"));
}

static void interior_pointers_are_reported(void) {
  take_blocks();
  CHECK(reports(free_inside, "not the beginning of a block"));
}

static void wrong_sizes_are_reported(void) {
  take_blocks();
  CHECK(reports(free_as_smaller, "its size is given as 16"));
  CHECK(reports(free_as_larger, "its size is given as 500"));
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  tsl_fast_free_sized(blocks[4], BYTES);
  tsl_fast_free_sized(NULL, 7);
}

static void freed_blocks_are_wiped(void) {
  take_blocks();
  tsl_fast_free(blocks[5]);
  for (int i = 0; i < BYTES; i++) CHECK_EQ(((unsigned char *)blocks[5])[i], 0);
}

static void freed_blocks_wait(void) {
  take_blocks();
  tsl_fast_free(blocks[6]);
  for (int i = 0; i < TSL_QUARANTINE_BLOCKS - 1; i++) {
    void *other = tsl_fast_malloc(BYTES);
    CHECK(other != blocks[6]);
    tsl_fast_free(other);
  }
}

static void free_as_other(void *block) {
  struct tsl_heap *mine = tsl_heap_current;
  tsl_heap_current = tsl_heap_take();
  tsl_fast_free(block);
  tsl_heap_current = mine;
}

// The block waits in the quarantine, and comes home as well: it is handed out once.
static void freed_by_two_is_handed_out_once(void) {
  static bool seen[1 << 16];
  take_blocks();
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  tsl_fast_free(blocks[7]);
  free_as_other(blocks[7]);
  capture_start();
  uintptr_t start = (uintptr_t)blocks[7] & ~(uintptr_t)(TSL_UNIT_BYTES - 1);
  bool twice = false;
  for (int i = 0; i < 3000; i++) {
    uintptr_t offset = (uintptr_t)tsl_fast_malloc(BYTES) - start;
    if (offset >= TSL_UNIT_BYTES) continue;
    twice |= seen[offset];
    seen[offset] = true;
  }
  for (int i = 10; i < 10 + 2 * TSL_QUARANTINE_BLOCKS; i++) tsl_fast_free(blocks[i]);
  const char *said = capture_end();
  CHECK(!twice);
  CHECK(strstr(said, "freed by two threads") != NULL);
  CHECK_EQ(capture_lines(said), 1);
  state_check();
}

static void write_first(void) {
  memset(blocks[5], 0x41, 8);
  (void)tsl_fast_malloc(BYTES);
}

static void write_last(void) {
  memset((char *)blocks[6] + BYTES - 8, 0x41, 8);
  for (int i = 10; i < 10 + TSL_QUARANTINE_BLOCKS; i++) tsl_fast_free(blocks[i]);
}

// The first bytes by the next allocation, the others when the block leaves the quarantine.
static void writes_to_freed_blocks_are_reported(void) {
  take_blocks();
  tsl_fast_free(blocks[5]);
  CHECK(reports(write_first, "was written to"));
  tsl_fast_free(blocks[6]);
  CHECK(reports(write_last, "was written to"));
  state_check();
}

static void order_is_random(void) {
  take_blocks();
  int ascending = 0;
  for (int i = 1; i < BLOCKS; i++) ascending += (char *)blocks[i] == (char *)blocks[i - 1] + BYTES;
  CHECK_LE(ascending, BLOCKS / 10);
}

static void every_slab_ends_in_a_guard(void) {
  take_blocks();
  CHECK(os_fake.calls[OS_FAKE_GUARD] >= 1);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    const struct tsl_sizeclass *c = &tsl_sizeclasses[class];
    CHECK_LE(c->capacity * c->bytes, c->slab_bytes - TSL_GUARD_BYTES);
  }
}

int main(void) {
  RUN(every_double_free_is_reported);
  RUN(double_free_in_the_quarantine_is_reported);
  RUN(interior_pointers_are_reported);
  RUN(wrong_sizes_are_reported);
  RUN(freed_blocks_are_wiped);
  RUN(freed_blocks_wait);
  RUN(writes_to_freed_blocks_are_reported);
  RUN(freed_by_two_is_handed_out_once);
  RUN(order_is_random);
  RUN(every_slab_ends_in_a_guard);
  return test_status();
}
