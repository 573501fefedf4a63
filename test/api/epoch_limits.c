// Limits of epochs: what they refuse, and what their callbacks are told.
#include "epochs.h"

struct told {
  int soft, hard;
  tslab_epoch epoch, current, closes;
  size_t held_bytes, wanted_bytes;
  void *landed;
};

static void limit_told(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                       size_t wanted_bytes, void *context) {
  struct told *told = context;
  *(limit == TSLAB_SOFT_LIMIT ? &told->soft : &told->hard) += 1;
  told->epoch = epoch;
  told->held_bytes = held_bytes;
  told->wanted_bytes = wanted_bytes;
  told->current = tslab_epoch_current();
  free(malloc(100));
  if (told->closes == TSLAB_DEFAULT) return;
  CHECK_EQ(tslab_epoch_release(told->closes), 0);
  told->closes = TSLAB_DEFAULT;
}

static tslab_epoch limited_open(tslab_epoch parent, size_t soft, size_t hard, struct told *told) {
  *told = (struct told){.closes = TSLAB_DEFAULT, .current = TSLAB_NO_EPOCH};
  tslab_epoch_options options = {
      .size = sizeof options,
      .parent = parent,
      .soft_limit_bytes = soft,
      .hard_limit_bytes = hard,
      .on_limit = limit_told,
      .limit_context = told,
  };
  return epoch_open(&options);
}

// Plain malloc of one size until it is refused; returns how many there were.
static size_t fill(size_t size) {
  size_t count = 0;
  errno = 0;
  while (malloc(size) != NULL) CHECK_LE(++count, 1000000);
  CHECK_EQ(errno, ENOMEM);
  return count;
}

static void hard_limit_of(size_t size, size_t limit) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, 0, limit, &told);
  tslab_scope scope;
  scope_enter(&scope, epoch);
  size_t count = fill(size);
  CHECK_THAT(count * size >= limit / (TSL_SECURE ? 3 : 2), "%zu blocks of %zu bytes", count, size);
  CHECK_LE(count * size, limit);
  CHECK_GE(told.hard, 1);
  CHECK_EQ(told.soft, 0);
  CHECK_EQ(told.epoch, epoch);
  CHECK_EQ(told.current, TSLAB_DEFAULT);
  CHECK_LE(told.held_bytes, limit);
  CHECK(told.held_bytes + told.wanted_bytes > limit);
  CHECK_LE(epoch_stats(epoch).held_bytes, limit);
  CHECK_REFUSED(calloc(1, 2 * limit), ENOMEM);
  CHECK_REFUSED(aligned_alloc(4096, 2 * limit), ENOMEM);
  CHECK_EQ(tslab_epoch_current(), epoch);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 2 * limit), ENOMEM);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  stale_check(epoch);
}

static void hard_limit_test(void) {
  for (size_t size = 16; size <= 100 * KIB; size = size * 3 / 2)
    hard_limit_of(size, size > 8 * KIB ? 4 * MIB : MIB);
}

// A refused realloc leaves the block and its content alone.
static void realloc_limit_test(void) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, 0, 2 * MIB, &told);
  for (size_t size = 64; size <= MIB; size *= 16) {
    unsigned char *block = tslab_epoch_malloc(epoch, size);
    pattern_fill(block, size, 5);
    CHECK_REFUSED(realloc(block, 3 * MIB), ENOMEM);
    pattern_check(block, size, 5);
    CHECK_LANDS(epoch, block);
    free(block);
  }
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  stale_check(epoch);
}

// The callback makes room: the allocation succeeds after all.
static void room_made_test(void) {
  struct told told, ignored;
  tslab_epoch parent = limited_open(TSLAB_DEFAULT, 0, 4 * MIB, &told);
  tslab_epoch child = limited_open(parent, 0, 0, &ignored);
  CHECK(tslab_epoch_malloc(child, 3 * MIB) != NULL);
  told.closes = child;
  void *block = tslab_epoch_malloc(parent, 3 * MIB);
  CHECK_LANDS(parent, block);
  CHECK_EQ(told.hard, 1);
  stale_check(child);
  CHECK_EQ(tslab_epoch_release(parent), 0);
}

static void soft_limit_test(void) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, MIB, 0, &told);
  for (int turn = 1; turn <= 3; turn++) {
    void *first = tslab_epoch_malloc(epoch, 512 * KIB);
    CHECK_EQ(told.soft, turn - 1);
    void *second = tslab_epoch_malloc(epoch, 600 * KIB), *third = tslab_epoch_malloc(epoch, MIB);
    CHECK(first != NULL && second != NULL && third != NULL);
    CHECK_EQ(told.soft, turn);
    CHECK_EQ(told.epoch, epoch);
    free(third);
    CHECK_EQ(told.soft, turn);
    free(second);
    free(first);
  }
  CHECK_EQ(told.hard, 0);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
}

static void *grow(void *block) { return realloc(block, 2 * MIB); }
static void *grow_in_place(void *block) {
  return tslab_resize_in_place(block, 2 * MIB) ? block : NULL;
}

// The callback runs in a thread that has allocated nothing before.
static void first_call_test(void *(*resize)(void *)) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, MIB, 0, &told);
  void *block = tslab_epoch_malloc(epoch, 512 * KIB);
  CHECK_LANDS(epoch, block);
  thread_run(resize, block);
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(told.current, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

// What descendants hold counts for all of their ancestors, and any of these can refuse.
static void limit_chain_test(void) {
  struct told told[3];
  tslab_epoch top = limited_open(TSLAB_DEFAULT, 0, 2 * MIB, &told[0]);
  tslab_epoch middle = limited_open(top, MIB, 0, &told[1]);
  tslab_epoch bottom = limited_open(middle, 0, 8 * MIB, &told[2]);
  void *block = tslab_epoch_malloc(bottom, 3 * MIB / 2);
  CHECK_LANDS(bottom, block);
  CHECK_EQ(epoch_stats(top).held_bytes, 3 * MIB / 2);
  CHECK_EQ(epoch_stats(top).live_objects, 0);
  CHECK_EQ(told[1].soft, 1);
  CHECK_EQ(told[1].epoch, middle);
  CHECK_REFUSED(tslab_epoch_malloc(bottom, MIB), ENOMEM);
  CHECK_EQ(told[0].hard, 1);
  CHECK_EQ(told[0].epoch, top);
  CHECK_EQ(told[2].hard, 0);
  CHECK_EQ(epoch_stats(bottom).held_bytes, 3 * MIB / 2);
  CHECK_EQ(epoch_stats(middle).held_bytes, 3 * MIB / 2);
  CHECK_REFUSED(tslab_epoch_malloc(top, MIB), ENOMEM);
  free(block);
  CHECK_EQ(epoch_stats(top).held_bytes, 0);
  CHECK_LANDS(top, block = tslab_epoch_malloc(top, MIB));
  CHECK_EQ(tslab_epoch_release(top), 0);
  stale_check(bottom);
}

int main(void) {
  hard_limit_test();
  realloc_limit_test();
  room_made_test();
  soft_limit_test();
  first_call_test(grow);
  first_call_test(grow_in_place);
  limit_chain_test();
  return 0;
}
