// What runs at the end of an epoch; close_fake_test.c is about the rest.
#include "epoch/deferred.h"

#include "epochs.h"
#include "memory/units.h"
#include "os_fake.h"
#include "takes.h"
#include "threads.h"

enum { BYTES = 100, SOME = 10, MANY = 3000 };

static void *blocks[MANY];
static tslab_epoch contested;
static pthread_barrier_t meeting;

static void check_over(tslab_epoch epoch) {
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void check_close_refused(tslab_epoch epoch, int error) {
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, error);
  CHECK_EQ(left.objects + left.bytes + left.pages, 0);
}

// What was registered says in which order it ran, and in which state it found its epoch.
static char order[64];
static tslab_epoch ending;

static void note(void *name) {
  strcat(order, name);
  CHECK_EQ(tslab_epoch_defer(ending, note, name), ECANCELED);
  for (int i = 0; i < SOME; i++) CHECK(pattern_is(blocks[i], BYTES, BYTES, BYTES));
  tslab_free(tslab_malloc(BYTES));
  tslab_epoch own = epochs_open();
  epochs_free(epochs_alloc(own, BYTES), BYTES);
  epochs_close(own, 0);
}

static void register_notes(void) {
  ending = epochs_open();
  order[0] = '\0';
  epochs_alloc_many(blocks, ending, BYTES, SOME);
  CHECK_EQ(tslab_epoch_defer(ending, note, "a"), 0);
  CHECK_EQ(tslab_epoch_defer(ending, note, "b"), 0);
  CHECK_EQ(tslab_epoch_defer(ending, note, "c"), 0);
  CHECK_EQ(strlen(order), 0);
}

static void close_runs_what_was_deferred(void) {
  register_notes();
  epochs_close(ending, SOME);
  CHECK(strcmp(order, "cba") == 0);
  CHECK_EQ(tslab_epoch_defer(ending, note, "d"), ECANCELED);
  check_close_refused(ending, ECANCELED);
  CHECK_EQ(tslab_epoch_release(ending), 0);
  CHECK(strcmp(order, "cba") == 0);
  CHECK_EQ(tslab_epoch_defer(ending, note, "d"), ESTALE);
  epochs_check_all_free();
}

static void release_runs_what_was_deferred(void) {
  register_notes();
  CHECK_EQ(tslab_epoch_release(ending), 0);
  CHECK(strcmp(order, "cba") == 0);
  check_over(ending);
}

// Whoever comes or goes between the end of the epoch and that of its heaps.
static void allocate_in_vain(void *unused) {
  (void)unused;
  CHECK_REFUSED(tslab_epoch_malloc(ending, BYTES), ECANCELED);
  CHECK_EQ(epochs_stats(ending).late, 1);
}

static void late_attempts_while_deferred_runs(void) {
  ending = epochs_open();
  epochs_alloc_many(blocks, ending, BYTES, SOME);
  CHECK_EQ(tslab_epoch_defer(ending, allocate_in_vain, NULL), 0);
  epochs_close(ending, SOME);
  epochs_free_many(blocks, BYTES, SOME);
  check_over(ending);
}

static void leave_and_wait(void *unused) {
  (void)unused;
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);
  CHECK(!epochs_is_over(ending));
}

static void *leave_meanwhile(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, ending);
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);
  epochs_leave(&scope);
  pthread_barrier_wait(&meeting);
  return unused;
}

static void leaving_while_deferred_runs(void) {
  pthread_t thread;
  ending = epochs_open();
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, 2), 0);
  CHECK_EQ(tslab_epoch_defer(ending, leave_and_wait, NULL), 0);
  CHECK_EQ(pthread_create(&thread, NULL, leave_meanwhile, NULL), 0);
  pthread_barrier_wait(&meeting);
  epochs_close(ending, 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  check_over(ending);
}

static void free_argument(void *block) { tslab_free(block); }

static void deferred_may_free_the_epochs_objects(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, SOME);
  void *large = epochs_alloc(epoch, 100000);
  for (int i = 1; i < SOME; i++) CHECK_EQ(tslab_epoch_defer(epoch, free_argument, blocks[i]), 0);
  CHECK_EQ(tslab_epoch_defer(epoch, free_argument, large), 0);
  CHECK_EQ(epochs_close(epoch, 1).bytes, takes(BYTES));
  epochs_free(blocks[0], BYTES);
  check_over(epoch);
}

static void count_run(void *count) { ++*(unsigned *)count; }

static void registrations_take_no_memory_for_good(void) {
  unsigned count = 0;
  for (int round = 0; round < 20; round++) {
    tslab_epoch epoch = epochs_open();
    for (int i = 0; i < MANY; i++) CHECK_EQ(tslab_epoch_defer(epoch, count_run, &count), 0);
    CHECK_EQ(epochs_stats(epoch).live_objects, 0);
    if (round % 2 == 0) epochs_close(epoch, 0);
    if (round % 2 == 1) CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK(epochs_is_over(epoch));
  }
  CHECK_EQ(count, 20 * MANY);
  CHECK_LE(tsl_units_open(), TSL_GROWTH_UNITS);
  epochs_check_all_free();
}

static void defer_is_refused(void) {
  tslab_epoch over = epochs_open();
  unsigned count = 0;
  epochs_close(over, 0);
  CHECK_EQ(tslab_epoch_defer(TSLAB_DEFAULT, count_run, &count), EPERM);
  CHECK_EQ(tslab_epoch_defer(TSLAB_NO_EPOCH, count_run, &count), ESTALE);
  CHECK_EQ(tslab_epoch_defer(over, count_run, &count), ESTALE);
  tslab_epoch epoch = epochs_open();
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tslab_malloc(32) != NULL) continue;
  CHECK_EQ(tslab_epoch_defer(epoch, count_run, &count), ENOMEM);
  epochs_close(epoch, 0);
  CHECK_EQ(count, 0);
}

// Threads register while the epoch ends: each registration runs once, or is refused.
static uint32_t registered, ran;

static void count_atomically(void *unused) {
  (void)unused;
  tsl_add_relaxed(&ran, 1);
}

static void *register_until_refused(void *unused) {
  int error;
  pthread_barrier_wait(&meeting);
  while ((error = tslab_epoch_defer(contested, count_atomically, NULL)) == 0)
    tsl_add_relaxed(&registered, 1);
  CHECK(error == ECANCELED || error == ESTALE);
  return unused;
}

static void deferring_races_with_the_end(void) {
  pthread_t threads[THREADS];
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int round = 0; round < 50; round++) {
    contested = epochs_open();
    void *survivor = epochs_alloc(contested, BYTES);
    for (int i = 0; i < THREADS; i++)
      pthread_create(&threads[i], NULL, register_until_refused, NULL);
    pthread_barrier_wait(&meeting);
    do usleep(50);
    while (tsl_load_relaxed(&registered) <= (uint32_t)round);
    epochs_close(contested, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(registered, ran);
    tslab_free(survivor);
  }
  CHECK_GE(ran, 50);
}

// ---- Cancelled calls ----

static tslab_deferred add(tslab_epoch epoch, void (*run)(void *), void *argument) {
  tslab_deferred call = tslab_deferred_add(epoch, run, argument);
  CHECK(call.epoch == epoch && call.number != 0);
  return call;
}

static void append(void *letter) { strcat(order, letter); }

// The first on the list, one in the middle and the last.
static void cancelled_calls_do_not_run(void) {
  static char *letters[] = {"a", "b", "c", "d", "e"};
  tslab_deferred calls[5];
  tslab_epoch epoch = epochs_open(), other = epochs_open();
  order[0] = '\0';
  for (unsigned i = 0; i < 5; i++) calls[i] = add(epoch, append, letters[i]);
  for (unsigned i = 0; i < 5; i += 2) CHECK(tslab_deferred_cancel(calls[i]));
  for (unsigned i = 0; i < 5; i += 2) CHECK(!tslab_deferred_cancel(calls[i]));
  CHECK(!tslab_deferred_cancel((tslab_deferred){other, calls[1].number}));
  CHECK(!tslab_deferred_cancel((tslab_deferred){0}));
  epochs_close(epoch, 0);
  CHECK(strcmp(order, "db") == 0);
  CHECK(!tslab_deferred_cancel(calls[1]));
}

// A record that is another call's now is not the old one's.
static void calls_are_cancelled_by_nobody_else(void) {
  tslab_epoch epoch = epochs_open();
  order[0] = '\0';
  tslab_deferred first = add(epoch, append, "a");
  CHECK(tslab_deferred_cancel(first));
  tslab_deferred second = add(epoch, append, "b");
  CHECK(!tslab_deferred_cancel(first));
  CHECK_EQ(tslab_epoch_defer(epoch, append, "c"), 0);
  CHECK(!tslab_deferred_cancel((tslab_deferred){epoch, 0}));
  epochs_close(epoch, 0);
  CHECK(strcmp(order, "cb") == 0);
  CHECK(!tslab_deferred_cancel(second));
}

static tslab_deferred earlier;

static void cancel_in_vain(void *unused) {
  (void)unused;
  CHECK(!tslab_deferred_cancel(earlier));
}

static void nothing_is_cancelled_once_the_epoch_ends(void) {
  tslab_epoch epoch = epochs_open();
  order[0] = '\0';
  earlier = add(epoch, append, "a");
  CHECK_EQ(tslab_epoch_defer(epoch, cancel_in_vain, NULL), 0);
  void *survivor = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  CHECK(strcmp(order, "a") == 0);
  CHECK(!tslab_deferred_cancel(earlier));
  epochs_free(survivor, BYTES);
}

static void cancelled_calls_take_no_memory(void) {
  tslab_epoch epoch = epochs_open();
  unsigned count = 0;
  for (unsigned i = 0; i < 100 * MANY; i++) {
    tslab_deferred call = add(epoch, count_run, &count);
    CHECK(tslab_deferred_cancel(call));
  }
  CHECK_LE(tsl_units_open(), TSL_GROWTH_UNITS);
  epochs_close(epoch, 0);
  CHECK_EQ(count, 0);
  epochs_check_all_free();
}

static void adding_is_refused(void) {
  tslab_epoch over = epochs_open();
  epochs_close(over, 0);
  errno = 0;
  CHECK_EQ(tslab_deferred_add(over, append, "a").number, 0);
  CHECK_EQ(errno, ESTALE);
  CHECK_EQ(tslab_deferred_add(TSLAB_DEFAULT, append, "a").number, 0);
  CHECK_EQ(errno, EPERM);
}

// Threads register and cancel while the epoch ends: each call runs or is cancelled, never both.
static uint32_t cancelled;

static void *register_and_cancel(void *unused) {
  tslab_deferred calls[SOME] = {{0}};
  pthread_barrier_wait(&meeting);
  for (unsigned i = 0;; i++) {
    tslab_deferred *call = &calls[i * 7 % SOME];
    tsl_add_relaxed(&cancelled, tslab_deferred_cancel(*call));
    *call = tslab_deferred_add(contested, count_atomically, NULL);
    if (call->number == 0) break;
    tsl_add_relaxed(&registered, 1);
  }
  CHECK(errno == ECANCELED || errno == ESTALE);
  return unused;
}

static void cancelling_races_with_the_end(void) {
  pthread_t threads[THREADS];
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int round = 0; round < 20; round++) {
    contested = epochs_open();
    void *survivor = epochs_alloc(contested, BYTES);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, register_and_cancel, NULL);
    pthread_barrier_wait(&meeting);
    do usleep(50);
    while (tsl_load_relaxed(&cancelled) < 3 * (uint32_t)(round + 1));
    epochs_close(contested, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(registered, ran + cancelled);
    tslab_free(survivor);
  }
  CHECK_GE(ran, 50);
  CHECK_GE(cancelled, 50);
}

int main(void) {
  RUN(close_runs_what_was_deferred);
  RUN(release_runs_what_was_deferred);
  RUN(late_attempts_while_deferred_runs);
  RUN(leaving_while_deferred_runs);
  RUN(deferred_may_free_the_epochs_objects);
  RUN(registrations_take_no_memory_for_good);
  RUN(defer_is_refused);
  RUN(deferring_races_with_the_end);
  RUN(cancelled_calls_do_not_run);
  RUN(calls_are_cancelled_by_nobody_else);
  RUN(nothing_is_cancelled_once_the_epoch_ends);
  RUN(cancelled_calls_take_no_memory);
  RUN(adding_is_refused);
  RUN(cancelling_races_with_the_end);
  return test_status();
}
