#include "state/history.h"

#include "state/label.h"
#include "test.h"

enum { LABEL = 2 };

// What 4 KiB of a short epoch may leave, and no more.
static const struct tsl_closed good = {4096, 1024, 1000, 0};

// All of it survives the close.
static const struct tsl_closed late = {4096, 4096, 0, 0};

static uint32_t close_late(uint64_t closed_ms) {
  struct tsl_closed closed = late;
  closed.closed_ms = closed_ms;
  return tsl_history_closed(LABEL, closed);
}

static void close_many(unsigned count, struct tsl_closed closed) {
  for (unsigned i = 0; i < count; i++) tsl_history_closed(LABEL, closed);
}

static void sixteen_small_short_epochs_are_enough(void) {
  close_many(TSL_HISTORY_ENOUGH - 1, good);
  CHECK(!tsl_history_shares(LABEL));
  close_many(1, good);
  CHECK(tsl_history_shares(LABEL));
  CHECK(!tsl_history_shares(LABEL + 1));
}

static void epochs_that_nobody_used_say_nothing(void) {
  close_many(100, (struct tsl_closed){0, 0, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
}

static void large_epochs_have_their_own(void) {
  close_many(30, (struct tsl_closed){(1 << 20) + 1, 0, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
}

static void long_epochs_have_their_own(void) {
  close_many(30, (struct tsl_closed){4096, 0, 1001, 0});
  CHECK(!tsl_history_shares(LABEL));
}

static void epochs_that_mostly_survive_have_their_own(void) {
  close_many(30, (struct tsl_closed){4096, 1025, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
}

static void one_release_is_enough(void) {
  close_many(30, good);
  CHECK(tsl_history_released(LABEL));
  CHECK(!tsl_history_released(LABEL));
  CHECK(!tsl_history_shares(LABEL));
  close_many(1000, good);
  CHECK(!tsl_history_shares(LABEL));
}

static void what_is_known_can_be_read(void) {
  close_many(TSL_HISTORY_ENOUGH, good);
  struct tsl_history history = tsl_history_of(LABEL);
  CHECK_EQ(history.ended, TSL_HISTORY_ENOUGH);
  CHECK_EQ(history.held_bytes, TSL_HISTORY_ENOUGH * 4096);
  CHECK_EQ(history.survivor_bytes, TSL_HISTORY_ENOUGH * 1024);
  CHECK_EQ(history.lived_ms, TSL_HISTORY_ENOUGH * 1000);
  CHECK(history.shares && !history.released);
  tsl_history_released(LABEL);
  history = tsl_history_of(LABEL);
  CHECK(!history.shares && history.released);
}

// The sums count half each 32 epochs: what was goes out of them.
static void old_epochs_are_forgotten(void) {
  close_many(32, (struct tsl_closed){1 << 23, 0, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
  close_many(32 * 4, good);
  CHECK(tsl_history_shares(LABEL));
}

static void labels_without_a_place_never_share(void) {
  for (unsigned i = 0; i < 100; i++) tsl_history_closed(TSL_LABEL_OTHER, good);
  CHECK(!tsl_history_shares(TSL_LABEL_OTHER));
}

static void long_ones_that_share_end_it(void) {
  close_many(30, good);
  for (unsigned i = 0; i < 1000; i++) tsl_history_shared(LABEL, 1000);
  for (unsigned i = 1; i < TSL_HISTORY_LONG; i++) tsl_history_shared(LABEL, 1001);
  CHECK(tsl_history_shares(LABEL));
  tsl_history_shared(LABEL, 1001);
  CHECK(!tsl_history_shares(LABEL));
  close_many(TSL_HISTORY_ENOUGH, good);
  CHECK(tsl_history_shares(LABEL));
}

static void survivors_that_are_freed_soon_do_not_count(void) {
  for (unsigned i = 1; i < TSL_HISTORY_ENOUGH; i++) {
    uint32_t trial = close_late(5);
    CHECK(trial != 0 && !tsl_history_over(LABEL, trial, TSL_HISTORY_LATE_MS));
  }
  uint32_t last = close_late(5);
  CHECK(!tsl_history_shares(LABEL));
  CHECK(tsl_history_over(LABEL, last, TSL_HISTORY_LATE_MS));
  CHECK(tsl_history_shares(LABEL));
  CHECK_EQ(tsl_history_of(LABEL).survivor_bytes, TSL_HISTORY_ENOUGH * 4096);
}

// The frees need not keep up with the closes.
static void the_last_survivor_decides(void) {
  uint32_t trials[TSL_HISTORY_ENOUGH];
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) trials[i] = close_late(i);
  CHECK_EQ(close_late(20), 0);
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) {
    CHECK(!tsl_history_shares(LABEL));
    tsl_history_over(LABEL, trials[i], 1);
  }
  CHECK(tsl_history_shares(LABEL));
}

static void late_ones_need_no_more_than_those_freed_before(void) {
  close_many(TSL_HISTORY_ENOUGH - 1, good);
  uint32_t trial = tsl_history_closed(LABEL, (struct tsl_closed){1 << 20, 1 << 20, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
  CHECK(tsl_history_over(LABEL, trial, 1) && tsl_history_shares(LABEL));
}

static void pass_but_for_one(uint64_t closed_ms) {
  for (unsigned i = 1; i < TSL_HISTORY_ENOUGH; i++)
    tsl_history_over(LABEL, close_late(closed_ms), 1);
  CHECK(close_late(closed_ms) != 0);
}

// One that keeps its survivors is enough.
static void true_survivors_keep_their_own(void) {
  for (unsigned i = 0; i < 100; i++) {
    pass_but_for_one(i * 1001);
    CHECK(!tsl_history_shares(LABEL));
  }
}

static void survivors_that_are_freed_too_late_count(void) {
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++)
    CHECK(!tsl_history_over(LABEL, close_late(0), TSL_HISTORY_LATE_MS + 1));
  CHECK(!tsl_history_shares(LABEL));
}

// A trial waits a second for its epochs. Then the next one begins, in which they do not count.
static void trials_follow_each_other(void) {
  pass_but_for_one(1000);
  CHECK_EQ(close_late(1000 + TSL_HISTORY_LATE_MS), 0);
  uint32_t next = close_late(1001 + TSL_HISTORY_LATE_MS);
  CHECK(next != 0);
  for (unsigned i = 2; i < TSL_HISTORY_ENOUGH; i++)
    tsl_history_over(LABEL, close_late(1001 + TSL_HISTORY_LATE_MS), 1);
  uint32_t last = close_late(1001 + TSL_HISTORY_LATE_MS);
  CHECK(!tsl_history_over(LABEL, next, 1));
  CHECK(!tsl_history_over(LABEL, last - 1, 1));
  CHECK(!tsl_history_shares(LABEL));
  CHECK(tsl_history_over(LABEL, last, 1));
}

// What one trial showed holds until another one has shown something else.
static void the_last_trial_counts(void) {
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) tsl_history_over(LABEL, close_late(0), 1);
  CHECK(tsl_history_shares(LABEL));
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) close_late(2000);
  CHECK(tsl_history_shares(LABEL));
  close_late(4000);
  CHECK(!tsl_history_shares(LABEL));
}

static void large_ones_have_their_own_however_soon_they_are_freed(void) {
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) {
    struct tsl_closed closed = {(1 << 20) + 1, 1 << 20, 0, 0};
    tsl_history_over(LABEL, tsl_history_closed(LABEL, closed), 0);
  }
  CHECK(!tsl_history_shares(LABEL));
}

static void what_is_forgotten_is_tried_anew(void) {
  pass_but_for_one(0);
  uint32_t last = close_late(0);
  CHECK_EQ(last, 0);
  for (unsigned i = 0; i < TSL_HISTORY_LONG; i++) tsl_history_shared(LABEL, 1001);
  for (unsigned i = 1; i < TSL_HISTORY_ENOUGH; i++) tsl_history_over(LABEL, close_late(0), 1);
  CHECK(!tsl_history_shares(LABEL));
  tsl_history_over(LABEL, close_late(0), 1);
  CHECK(tsl_history_shares(LABEL));
}

int main(void) {
  RUN(sixteen_small_short_epochs_are_enough);
  RUN(epochs_that_nobody_used_say_nothing);
  RUN(large_epochs_have_their_own);
  RUN(long_epochs_have_their_own);
  RUN(epochs_that_mostly_survive_have_their_own);
  RUN(what_is_known_can_be_read);
  RUN(one_release_is_enough);
  RUN(old_epochs_are_forgotten);
  RUN(labels_without_a_place_never_share);
  RUN(long_ones_that_share_end_it);
  RUN(survivors_that_are_freed_soon_do_not_count);
  RUN(the_last_survivor_decides);
  RUN(late_ones_need_no_more_than_those_freed_before);
  RUN(true_survivors_keep_their_own);
  RUN(survivors_that_are_freed_too_late_count);
  RUN(trials_follow_each_other);
  RUN(the_last_trial_counts);
  RUN(large_ones_have_their_own_however_soon_they_are_freed);
  RUN(what_is_forgotten_is_tried_anew);
  return test_status();
}
