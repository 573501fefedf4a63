// What only the secure build does; other builds leave this file out.
#include "slab/secure.h"

#include "os_fake.h"
#include "secured.h"
#include "state.h"

static void free_first(void) { tsl_fast_free(blocks[0]); }
static void free_inside(void) { tsl_fast_free((char *)blocks[1] + 16); }
static void free_as_smaller(void) { tslab_free_sized(blocks[2], 16); }
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

static void free_seventh_as_other(void) { free_as_other(blocks[7]); }

// The block waits in the quarantine, and another thread frees it as well: it is handed out once.
static void freed_by_two_is_reported_at_once(void) {
  take_blocks();
  tsl_fast_free(blocks[7]);
  CHECK(reports(free_seventh_as_other, "free already"));
  state_check();
}

static void freed_by_other_and_owner_is_reported(void) {
  take_blocks();
  free_as_other(blocks[0]);
  CHECK(reports(free_first, "free already"));
  state_check();
}

// Of three bits each comes a third of the times, whatever lies between them.
static void each_bit_is_picked_as_often(void) {
  enum { TIMES = 30000 };
  static const uint64_t words[] = {7, UINT64_C(1) << 63 | 1 << 5 | 1 << 4};
  for (int i = 0; i < 2; i++) {
    int counts[64] = {0};
    for (int time = 0; time < TIMES; time++) counts[tsl_secure_pick(words[i])]++;
    for (int bit = 0; bit < 64; bit++) {
      int expected = (words[i] >> bit & 1) != 0 ? TIMES / 3 : 0;
      CHECK_LE(abs(counts[bit] - expected), expected / 20);
    }
  }
}

static void released_memory_is_zero(void) {
  tslab_epoch epoch = tslab_epoch_open("request", NULL);
  for (int i = 0; i < 600; i++) memset(tslab_epoch_malloc(epoch, BYTES), 0x5a, BYTES);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  tsl_options.on_error = TSL_ON_ERROR_ABORT;
  take_blocks();
  for (int i = 0; i < BLOCKS; i++) tsl_fast_free(blocks[i]);
  epoch = tslab_epoch_open("request", NULL);
  for (int i = 0; i < 600; i++) memset(tslab_epoch_malloc(epoch, BYTES), 0x5a, BYTES);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  take_blocks();
  for (int i = 0; i < BLOCKS; i++) tsl_fast_free(blocks[i]);
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
  for (int i = 1; i < BLOCKS; i++) ascending += (char *)blocks[i] == (char *)blocks[i - 1] + TAKES;
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
  RUN(freed_by_two_is_reported_at_once);
  RUN(freed_by_other_and_owner_is_reported);
  RUN(each_bit_is_picked_as_often);
  RUN(released_memory_is_zero);
  RUN(order_is_random);
  RUN(every_slab_ends_in_a_guard);
  return test_status();
}
