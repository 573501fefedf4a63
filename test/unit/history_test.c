#include "state/history.h"

#include "state/label.h"
#include "test.h"

enum { LABEL = 2 };

// What 4 KiB of a short epoch may leave, and no more.
static const struct tsl_closed good = {
    .held_bytes = 4096, .survivor_bytes = 1024, .lived_ms = 1000};

// In each 64 objects pin more than a sixteenth of its memory.
static const struct tsl_closed lost = {
    .held_bytes = 4096, .pinned_bytes = 257, .survivors = 64, .lived_ms = 1001};

static void close_many(unsigned count, struct tsl_closed closed) {
  for (unsigned i = 0; i < count; i++) tsl_history_closed(LABEL, &closed);
}

static void sixteen_small_short_epochs_are_enough(void) {
  close_many(TSL_HISTORY_ENOUGH - 1, good);
  CHECK(!tsl_history_shares(LABEL));
  close_many(1, good);
  CHECK(tsl_history_shares(LABEL));
  CHECK(!tsl_history_shares(LABEL + 1));
}

// Sixteen that ended tell, or one that was released; what is forgotten tells nothing.
static void labels_are_known_by_their_ends(void) {
  const struct tsl_closed large = {.held_bytes = 4 << 20};
  close_many(TSL_HISTORY_ENOUGH - 1, large);
  CHECK(!tsl_history_is_known(LABEL));
  close_many(1, large);
  CHECK(tsl_history_is_known(LABEL));
  CHECK(!tsl_history_is_known(LABEL + 1));
  tsl_history_released(LABEL + 1);
  CHECK(tsl_history_is_known(LABEL + 1));
}

static void labels_that_are_forgotten_are_not_known(void) {
  close_many(TSL_HISTORY_ENOUGH, good);
  CHECK(tsl_history_is_known(LABEL));
  for (int i = 0; i < TSL_HISTORY_LONG; i++) tsl_history_shared(LABEL, TSL_HISTORY_LIVED_MS + 1);
  CHECK(!tsl_history_shares(LABEL));
  CHECK(!tsl_history_is_known(LABEL));
}

static void epochs_that_nobody_used_say_nothing(void) {
  close_many(100, (struct tsl_closed){0});
  CHECK(!tsl_history_shares(LABEL));
}

static void large_epochs_have_their_own(void) {
  close_many(30, (struct tsl_closed){.held_bytes = (1 << 20) + 1});
  CHECK(!tsl_history_shares(LABEL));
}

static void long_epochs_have_their_own(void) {
  close_many(30, (struct tsl_closed){.held_bytes = 4096, .lived_ms = 1001});
  CHECK(!tsl_history_shares(LABEL));
}

static void epochs_that_mostly_survive_have_their_own(void) {
  close_many(30, (struct tsl_closed){.held_bytes = 4096, .survivor_bytes = 1025});
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
  struct tsl_closed closed = good;
  closed.pinned_bytes = 2048;
  close_many(TSL_HISTORY_ENOUGH, closed);
  struct tsl_history history = tsl_history_of(LABEL);
  CHECK_EQ(history.ended, TSL_HISTORY_ENOUGH);
  CHECK_EQ(history.held_bytes, TSL_HISTORY_ENOUGH * 4096);
  CHECK_EQ(history.pinned_bytes, TSL_HISTORY_ENOUGH * 2048);
  CHECK_EQ(history.survivor_bytes, TSL_HISTORY_ENOUGH * 1024);
  CHECK_EQ(history.lived_ms, TSL_HISTORY_ENOUGH * 1000);
  CHECK(history.shares && !history.released);
  tsl_history_released(LABEL);
  history = tsl_history_of(LABEL);
  CHECK(!history.shares && history.released);
}

// The sums count half each 32 epochs: what was goes out of them.
static void old_epochs_are_forgotten(void) {
  close_many(32, (struct tsl_closed){.held_bytes = 1 << 23});
  CHECK(!tsl_history_shares(LABEL));
  close_many(32 * 4, good);
  CHECK(tsl_history_shares(LABEL));
}

static void labels_without_a_place_never_share(void) {
  for (unsigned i = 0; i < 100; i++) tsl_history_closed(TSL_LABEL_OTHER, &good);
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

static void free_many(unsigned count) {
  for (unsigned i = 0; i < count; i++) tsl_history_freed(LABEL);
}

// Each of them is too large, lives too long, and leaves too much.
static void lost_bets_share_whatever_their_size(void) {
  struct tsl_closed large = {.held_bytes = 1 << 23,
                             .pinned_bytes = 1 << 23,
                             .survivor_bytes = 1 << 23,
                             .survivors = 64,
                             .lived_ms = 5000};
  close_many(TSL_HISTORY_FEW - 1, large);
  free_many(TSL_HISTORY_FEW);
  CHECK(!tsl_history_shares(LABEL));
  close_many(1, large);
  CHECK(tsl_history_shares(LABEL));
}

static void what_pins_little_is_lost_after_sixteen(void) {
  close_many(TSL_HISTORY_ENOUGH - 1, lost);
  free_many(TSL_HISTORY_ENOUGH);
  CHECK(!tsl_history_shares(LABEL));
  close_many(1, lost);
  CHECK(tsl_history_shares(LABEL));
}

// Large, so that they do not share for being small.
static void a_sixteenth_may_be_pinned(void) {
  struct tsl_closed large = {
      .held_bytes = 16 << 20, .pinned_bytes = 1 << 20, .survivors = 1, .lived_ms = 1};
  for (unsigned i = 0; i < 60; i++) {
    close_many(1, large);
    free_many(1);
    CHECK(!tsl_history_shares(LABEL));
  }
}

// They may be released later.
static void survivors_that_nobody_frees_lose_no_bet(void) {
  struct tsl_closed large = {
      .held_bytes = 1 << 23, .pinned_bytes = 1 << 23, .survivors = TSL_HISTORY_FREED};
  close_many(32, large);
  free_many(31);
  close_many(1, large);
  CHECK(!tsl_history_shares(LABEL));
  free_many(4);
  close_many(1, large);
  CHECK(tsl_history_shares(LABEL));
}

// Clean ones before it prove nothing.
static void a_first_survivor_loses_no_bet(void) {
  close_many(TSL_HISTORY_ENOUGH, (struct tsl_closed){.held_bytes = 1 << 21});
  close_many(1,
             (struct tsl_closed){.held_bytes = 1 << 28, .pinned_bytes = 1 << 28, .survivors = 1});
  CHECK(!tsl_history_shares(LABEL));
}

// Of few survivors that are gone nothing follows for many that stay.
static void frees_of_long_ago_lose_no_bet(void) {
  for (unsigned i = 0; i < 1000; i++) {
    close_many(1, (struct tsl_closed){.held_bytes = 1 << 21, .survivors = 1});
    free_many(1);
  }
  close_many(
      100, (struct tsl_closed){.held_bytes = 1 << 28, .pinned_bytes = 1 << 28, .survivors = 1000});
  CHECK(!tsl_history_shares(LABEL));
}

static void a_lost_bet_stays_lost(void) {
  close_many(TSL_HISTORY_ENOUGH - 1, lost);
  free_many(1000);
  close_many(1, lost);
  CHECK(tsl_history_shares(LABEL));
  for (unsigned i = 0; i < 1000; i++) tsl_history_shared(LABEL, 1001);
  close_many(100, (struct tsl_closed){.held_bytes = 1 << 23});
  CHECK(tsl_history_shares(LABEL));
  tsl_history_released(LABEL);
  CHECK(!tsl_history_shares(LABEL));
}

int main(void) {
  RUN(sixteen_small_short_epochs_are_enough);
  RUN(labels_are_known_by_their_ends);
  RUN(labels_that_are_forgotten_are_not_known);
  RUN(epochs_that_nobody_used_say_nothing);
  RUN(large_epochs_have_their_own);
  RUN(long_epochs_have_their_own);
  RUN(epochs_that_mostly_survive_have_their_own);
  RUN(what_is_known_can_be_read);
  RUN(one_release_is_enough);
  RUN(old_epochs_are_forgotten);
  RUN(labels_without_a_place_never_share);
  RUN(long_ones_that_share_end_it);
  RUN(lost_bets_share_whatever_their_size);
  RUN(what_pins_little_is_lost_after_sixteen);
  RUN(a_sixteenth_may_be_pinned);
  RUN(survivors_that_nobody_frees_lose_no_bet);
  RUN(a_first_survivor_loses_no_bet);
  RUN(frees_of_long_ago_lose_no_bet);
  RUN(a_lost_bet_stays_lost);
  return test_status();
}
