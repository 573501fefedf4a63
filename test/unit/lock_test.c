#include "base/lock.h"

#include "threads.h"

enum { ROUNDS = 20000 };

static struct tsl_lock lock;
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

static void *release_later(void *unused) {
  usleep(20000);
  guarded = 1;
  tsl_lock_release(&lock);
  return unused;
}

static void acquire_waits(void) {
  pthread_t thread;
  tsl_lock_acquire(&lock);
  CHECK_EQ(pthread_create(&thread, NULL, release_later, NULL), 0);
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

int main(void) {
  RUN(one_holder);
  RUN(threads_exclude_each_other);
  RUN(acquire_waits);
  RUN(only_others_locks_are_taken_over);
  return test_status();
}
