#include "alloc/fork.h"
#include "base/options.h"
#include "epochs.h"
#include "os_fake.h"
#include "threads.h"

enum { BYTES = 100, REQUESTS = 3000, EVERY = 7 };

static enum tslab_state state(tslab_epoch epoch) { return epochs_stats(epoch).state; }

static bool failed(tslab_epoch epoch, int error) {
  return epoch == TSLAB_NO_EPOCH && errno == error;
}

static void first_use_opens_an_epoch(void) {
  tslab_rotation rotation = TSLAB_ROTATION("minute");
  tslab_epoch first = tslab_rotation_current(&rotation);
  CHECK(first != TSLAB_NO_EPOCH && first != TSLAB_DEFAULT);
  CHECK_EQ(state(first), TSLAB_OPEN);
  CHECK(strcmp(epochs_stats(first).label, "minute") == 0);
  CHECK_EQ(tsl_region.last_epoch, 1);
}

static void without_a_reason_it_never_turns(void) {
  tslab_rotation rotation = TSLAB_ROTATION("still");
  tslab_epoch first = tslab_rotation_current(&rotation);
  for (int i = 0; i < REQUESTS; i++) {
    os_fake.now_ms += 100000;
    CHECK_EQ(tslab_rotation_current(&rotation), first);
  }
  CHECK_EQ(tsl_region.last_epoch, 1);
}

// The epoch before the current one stays open until the next turn.
static void the_one_before_stays_open(void) {
  tslab_rotation rotation = TSLAB_ROTATION("turns");
  tslab_epoch first = tslab_rotation_advance(&rotation);
  CHECK_EQ(tslab_rotation_current(&rotation), first);
  tslab_epoch second = tslab_rotation_advance(&rotation);
  CHECK_NE(second, first);
  CHECK_EQ(tslab_rotation_current(&rotation), second);
  CHECK_EQ(state(first), TSLAB_OPEN);
  void *block = epochs_alloc(first, BYTES);
  tslab_epoch third = tslab_rotation_advance(&rotation);
  CHECK_EQ(state(first), TSLAB_CLOSED);
  CHECK_EQ(state(second), TSLAB_OPEN);
  CHECK_EQ(state(third), TSLAB_OPEN);
  epochs_free(block, BYTES);
  CHECK(epochs_is_over(first));
}

static void turns_when_time_has_passed(void) {
  os_fake.now_ms = 12345;
  tslab_rotation rotation = TSLAB_ROTATION("time", .every_ms = 1000);
  tslab_epoch first = tslab_rotation_current(&rotation);
  os_fake.now_ms += 999;
  CHECK_EQ(tslab_rotation_current(&rotation), first);
  os_fake.now_ms += 1;
  tslab_epoch second = tslab_rotation_current(&rotation);
  CHECK_NE(second, first);
  CHECK_EQ(state(first), TSLAB_OPEN);
  os_fake.now_ms += 100000;
  tslab_epoch third = tslab_rotation_current(&rotation);
  CHECK_NE(third, second);
  CHECK_EQ(tslab_rotation_current(&rotation), third);
  CHECK(epochs_is_over(first));
  CHECK_EQ(state(second), TSLAB_OPEN);
}

// An advance starts the time anew.
static void time_counts_from_the_last_turn(void) {
  os_fake.now_ms = 500;
  tslab_rotation rotation = TSLAB_ROTATION("time", .every_ms = 100);
  tslab_rotation_current(&rotation);
  os_fake.now_ms += 60;
  tslab_epoch second = tslab_rotation_advance(&rotation);
  os_fake.now_ms += 60;
  CHECK_EQ(tslab_rotation_current(&rotation), second);
  os_fake.now_ms += 40;
  CHECK_NE(tslab_rotation_current(&rotation), second);
}

static void turns_after_so_many_requests(void) {
  tslab_rotation rotation = TSLAB_ROTATION("requests", .every_requests = EVERY);
  tslab_epoch before = TSLAB_NO_EPOCH;
  for (int turn = 0; turn < 10; turn++) {
    tslab_epoch current = tslab_rotation_current(&rotation);
    CHECK_NE(current, before);
    for (int i = 1; i < EVERY; i++) CHECK_EQ(tslab_rotation_current(&rotation), current);
    before = current;
  }
  tslab_epoch next = tslab_rotation_advance(&rotation);
  for (int i = 0; i < EVERY; i++) CHECK_EQ(tslab_rotation_current(&rotation), next);
  CHECK_NE(tslab_rotation_current(&rotation), next);
}

static void whichever_comes_first(void) {
  os_fake.now_ms = 1;
  tslab_rotation rotation = TSLAB_ROTATION("both", .every_ms = 50, .every_requests = 3);
  tslab_epoch first = tslab_rotation_current(&rotation);
  os_fake.now_ms += 50;
  tslab_epoch second = tslab_rotation_current(&rotation);
  CHECK_NE(second, first);
  CHECK_EQ(tslab_rotation_current(&rotation), second);
  CHECK_EQ(tslab_rotation_current(&rotation), second);
  CHECK_NE(tslab_rotation_current(&rotation), second);
}

static void each_epoch_has_the_options(void) {
  tslab_epoch parent = epochs_open();
  tslab_epoch_options options = {
      .size = sizeof options, .parent = parent, .hard_limit_bytes = 1 << 20};
  tslab_rotation rotation = TSLAB_ROTATION("options", .options = &options);
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = tslab_rotation_advance(&rotation);
    CHECK_EQ(epochs_stats(epoch).parent, parent);
    CHECK_REFUSED(tslab_epoch_malloc(epoch, 2 << 20), ENOMEM);
  }
  CHECK_EQ(epochs_stats(parent).children, 2);
}

static void ending_closes_both(void) {
  tslab_rotation rotation = TSLAB_ROTATION("ends");
  tslab_rotation_end(&rotation);
  tslab_epoch first = tslab_rotation_advance(&rotation);
  tslab_epoch second = tslab_rotation_advance(&rotation);
  void *blocks[] = {epochs_alloc(first, BYTES), epochs_alloc(second, BYTES)};
  CHECK(blocks[0] != NULL);
  CHECK(blocks[1] != NULL);
  tslab_rotation_end(&rotation);
  CHECK_EQ(state(first), TSLAB_CLOSED);
  CHECK_EQ(state(second), TSLAB_CLOSED);
  for (int i = 0; i < 2; i++) epochs_free(blocks[i], BYTES);
  tslab_rotation_end(&rotation);
  epochs_check_all_free();
  tslab_epoch again = tslab_rotation_current(&rotation);
  CHECK_EQ(state(again), TSLAB_OPEN);
  CHECK_EQ(tslab_rotation_current(&rotation), again);
  tslab_rotation_end(&rotation);
  CHECK(epochs_is_over(again));
}

static void failures_keep_what_there_is(void) {
  tslab_epoch parent = epochs_open();
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  tslab_rotation rotation = TSLAB_ROTATION("fails", .options = &options, .every_requests = 1);
  tslab_epoch first = tslab_rotation_advance(&rotation);
  tslab_epoch second = tslab_rotation_advance(&rotation);
  epochs_close(parent, 0);
  CHECK(failed(tslab_rotation_advance(&rotation), ECANCELED));
  CHECK_EQ(tslab_rotation_current(&rotation), second);
  CHECK_EQ(state(first), TSLAB_OPEN);
  CHECK_EQ(state(second), TSLAB_OPEN);
  CHECK(failed(tslab_rotation_current(&rotation), ECANCELED));
  CHECK_EQ(state(second), TSLAB_OPEN);
  rotation.options = NULL;
  tslab_epoch third = tslab_rotation_current(&rotation);
  CHECK_EQ(state(third), TSLAB_OPEN);
  CHECK(epochs_is_over(first));
}

static void failures_say_why(void) {
  char label[TSLAB_LABEL_BYTES + 1] = {0};
  memset(label, 'x', TSLAB_LABEL_BYTES);
  tslab_rotation rotation = TSLAB_ROTATION(label);
  CHECK(failed(tslab_rotation_current(&rotation), EINVAL));
  CHECK(failed(tslab_rotation_advance(&rotation), EINVAL));
  label[1] = '\0';
  os_fake_fail_all(OS_FAKE_FALLIBLE);
  while (tslab_epoch_open("test", NULL) != TSLAB_NO_EPOCH) continue;
  CHECK(failed(tslab_rotation_current(&rotation), ENOMEM));
  os_fake_recover();
  CHECK_EQ(state(tslab_rotation_current(&rotation)), TSLAB_OPEN);
}

// Memory of a program that goes on for ever stays what two epochs need.
static void survivors_of_every_turn_go_back(void) {
  tslab_rotation rotation = TSLAB_ROTATION("long", .every_requests = EVERY);
  void *held[2 * EVERY] = {NULL};
  for (int i = 0; i < 10000; i++) {
    tslab_free(held[i % (2 * EVERY)]);
    held[i % (2 * EVERY)] = epochs_alloc(tslab_rotation_current(&rotation), BYTES);
  }
  CHECK_LE(tsl_region.last_epoch, 4);
  CHECK_LE(tsl_region.last_heap, 5);
  tslab_rotation_end(&rotation);
  for (int i = 0; i < 2 * EVERY; i++) tslab_free(held[i]);
  epochs_check_all_free();
}

// Threads ask and allocate: nobody is refused who uses what he just got.
static tslab_rotation shared = TSLAB_ROTATION("shared", .every_requests = 1000);
static uint32_t turns;

static void *ask_often(void *unused) {
  tslab_epoch before = TSLAB_NO_EPOCH;
  for (int i = 0; i < REQUESTS; i++) {
    tslab_epoch current = tslab_rotation_current(&shared);
    CHECK(current != TSLAB_NO_EPOCH);
    void *block = tslab_epoch_malloc(current, BYTES);
    if (block == NULL) CHECK(errno == ECANCELED || errno == ESTALE);
    tslab_free(block);
    if (current != before) tsl_add_relaxed(&turns, 1);
    before = current;
  }
  return unused;
}

static void threads_share_a_rotation(void) {
  threads_run(ask_often, NULL);
  CHECK_LE(turns, THREADS * (THREADS * REQUESTS / 1000));
  CHECK_GE(turns, THREADS * REQUESTS / 1000);
  CHECK_LE(tsl_region.last_epoch, 3 + THREADS * TSL_HOME_SLOTS);
  tslab_rotation_end(&shared);
  epochs_check_all_free();
}

// The lock that another thread holds, as far as this one can tell.
static void hold_lock(void (*waits)(void)) {
  tsl_lock_waits = waits;
  tsl_store_relaxed(&tsl_fork_rotation_lock.holder, 1);
}

static void let_go(void) { tsl_store_relaxed(&tsl_fork_rotation_lock.holder, 0); }

static void must_not_wait(void) {
  let_go();
  check_failed(__FILE__, __LINE__, "nobody waits for the lock", "%s", "");
}

static void asking_waits_for_nobody(void) {
  tslab_rotation rotation = TSLAB_ROTATION("waits", .every_requests = EVERY, .every_ms = 1000);
  tslab_epoch current = tslab_rotation_current(&rotation);
  hold_lock(must_not_wait);
  for (int i = 1; i < EVERY; i++) CHECK_EQ(tslab_rotation_current(&rotation), current);
  let_go();
  CHECK_NE(tslab_rotation_current(&rotation), current);
}

static tslab_rotation contended;
static tslab_epoch turned;

static void another_turns(void) {
  let_go();
  turned = tslab_rotation_advance(&contended);
}

// Two threads see that a turn is due: one of them makes it.
static void due_turns_are_made_once(void) {
  os_fake.now_ms = 1;
  contended = (tslab_rotation){.label = "once", .every_ms = 50, .every_requests = 1};
  tslab_epoch first = tslab_rotation_current(&contended);
  hold_lock(another_turns);
  CHECK_EQ(tslab_rotation_current(&contended), turned);
  CHECK_EQ(contended.previous, first);
  contended.every_requests = 0;
  os_fake.now_ms += 50;
  hold_lock(another_turns);
  CHECK_EQ(tslab_rotation_current(&contended), turned);
  tslab_rotation_end(&contended);
  contended.every_ms = 0;
  hold_lock(another_turns);
  CHECK_EQ(tslab_rotation_current(&contended), turned);
  CHECK_EQ(contended.previous, TSLAB_DEFAULT);
}

// As if a fork had taken the thread of a turn when the next epoch was not the current one yet.
static void a_torn_turn_closes_nothing_early(void) {
  tslab_rotation torn = {.label = "torn", .every_requests = 1};
  tslab_epoch current = tslab_rotation_current(&torn);
  torn.previous = current;
  CHECK(tslab_rotation_current(&torn) != current);
  void *block = tslab_epoch_malloc(current, BYTES);
  CHECK(block != NULL);  // the one before stays open
  tslab_free(block);
  tslab_rotation_end(&torn);
  epochs_check_all_free();
}

int main(void) {
  RUN(first_use_opens_an_epoch);
  RUN(without_a_reason_it_never_turns);
  RUN(the_one_before_stays_open);
  RUN(turns_when_time_has_passed);
  RUN(time_counts_from_the_last_turn);
  RUN(turns_after_so_many_requests);
  RUN(whichever_comes_first);
  RUN(each_epoch_has_the_options);
  RUN(ending_closes_both);
  RUN(failures_keep_what_there_is);
  RUN(failures_say_why);
  RUN(survivors_of_every_turn_go_back);
  RUN(threads_share_a_rotation);
  RUN(asking_waits_for_nobody);
  RUN(due_turns_are_made_once);
  RUN(a_torn_turn_closes_nothing_early);
  return test_status();
}
