#include "base/lock.h"

#include "capture.h"
#include "threads.h"

enum { ROUNDS = 20000 };

static struct tsl_lock lock = {.rank = TSL_RANK_GROW};
static struct tsl_lock inner = {.rank = TSL_RANK_SEGMENT};
static unsigned long guarded;

static void one_holder(void) {
  CHECK(tsl_lock_try(&lock));
  CHECK(!tsl_lock_try(&lock));
  CHECK(!tsl_lock_try_briefly(&lock));
  tsl_lock_release(&lock);
  CHECK(tsl_lock_try_briefly(&lock));
  tsl_lock_release(&lock);
  tsl_lock_acquire(&lock);
  CHECK(!tsl_lock_try(&lock));
}

static void *wait_and_count(void *unused) {
  for (int i = 0; i < ROUNDS; i++) {
    tsl_lock_acquire(&lock);
    guarded++;
    tsl_lock_release(&lock);
  }
  return unused;
}

static void *try_and_count(void *unused) {
  for (int i = 0; i < ROUNDS;) {
    if (!(i % 2 != 0 ? tsl_lock_try(&lock) : tsl_lock_try_briefly(&lock))) continue;
    guarded++;
    i++;
    tsl_lock_release(&lock);
  }
  return unused;
}

static void threads_exclude_each_other(void) {
  threads_run(wait_and_count, NULL);
  CHECK_EQ(guarded, THREADS * ROUNDS);
  threads_run(try_and_count, NULL);
  CHECK_EQ(guarded, 2 * THREADS * ROUNDS);
}

static pthread_barrier_t is_held;

static void *hold_a_while(void *unused) {
  tsl_lock_acquire(&lock);
  pthread_barrier_wait(&is_held);
  usleep(20000);
  guarded = 1;
  tsl_lock_release(&lock);
  return unused;
}

static void acquire_waits(void) {
  pthread_t thread;
  CHECK_EQ(pthread_barrier_init(&is_held, NULL, 2), 0);
  CHECK_EQ(pthread_create(&thread, NULL, hold_a_while, NULL), 0);
  pthread_barrier_wait(&is_held);
  tsl_lock_acquire(&lock);
  CHECK_EQ(guarded, 1);
  pthread_join(thread, NULL);
}

static void *hold(void *unused) {
  tsl_lock_acquire(&lock);
  return unused;
}

static void only_others_locks_are_taken_over(void) {
  CHECK(!tsl_lock_take_over(&lock));
  tsl_lock_acquire(&lock);
  CHECK(!tsl_lock_take_over(&lock));
  CHECK(!tsl_lock_try(&lock));
  tsl_lock_release(&lock);
  threads_run_one(hold, NULL);
  CHECK(!tsl_lock_try(&lock));
  CHECK(tsl_lock_take_over(&lock));
  CHECK(tsl_lock_try(&lock));
}

static void take_inwards(void) {
  tsl_lock_acquire(&lock);
  tsl_lock_acquire(&inner);
  tsl_lock_release(&lock);
  tsl_lock_release(&inner);
  tsl_lock_acquire(&lock);
}

static void take_outwards(void) {
  tsl_lock_acquire(&inner);
  tsl_lock_acquire(&lock);
}

static void try_outwards(void) {
  tsl_lock_acquire(&inner);
  CHECK(tsl_lock_try(&lock));
}

static void take_equals(void) {
  struct tsl_lock other = {.rank = TSL_RANK_GROW};
  tsl_lock_acquire(&other);
  tsl_lock_acquire(&lock);
}

static void release_anothers(void) {
  threads_run_one(hold, NULL);
  tsl_lock_release(&lock);
}

// L1
static void ranks_fall(void) {
  bool dies = TSL_DEBUG >= 1;
  CHECK_EQ(capture_child(take_inwards), 0);
  CHECK_EQ(capture_aborts(take_outwards), dies);
  CHECK_EQ(strstr(capture_text, "tsl_lock_is_below_held") != NULL, dies);
  CHECK_EQ(capture_aborts(try_outwards), dies);
  CHECK_EQ(capture_aborts(take_equals), dies);
  CHECK_EQ(capture_aborts(release_anothers), dies);
}

int main(void) {
  RUN(ranks_fall);
  RUN(one_holder);
  RUN(threads_exclude_each_other);
  RUN(acquire_waits);
  RUN(only_others_locks_are_taken_over);
  return test_status();
}
