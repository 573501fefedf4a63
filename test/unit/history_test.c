#include "state/history.h"

#include "state/label.h"
#include "test.h"

enum { LABEL = 2 };

// What 4 KiB of a short epoch may leave, and no more.
static const struct tsl_closed good = {4096, 1024, 1000};

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
  close_many(100, (struct tsl_closed){0, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
}

static void large_epochs_have_their_own(void) {
  close_many(30, (struct tsl_closed){(1 << 20) + 1, 0, 0});
  CHECK(!tsl_history_shares(LABEL));
}

static void long_epochs_have_their_own(void) {
  close_many(30, (struct tsl_closed){4096, 0, 1001});
  CHECK(!tsl_history_shares(LABEL));
}

static void epochs_that_mostly_survive_have_their_own(void) {
  close_many(30, (struct tsl_closed){4096, 1025, 0});
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
  close_many(32, (struct tsl_closed){1 << 23, 0, 0});
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
  return test_status();
}
