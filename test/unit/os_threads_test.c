#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "capture.h"
#include "os/os.h"
#include "threads.h"

enum { ROUNDS = 20000 };

static uint64_t monotonic_ms(void) {
  struct timespec now;
  CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void clock_goes_on(void) {
  uint64_t earliest = monotonic_ms(), before = tsl_os_now_ms(), now;
  CHECK_LE(before, monotonic_ms());
  CHECK_GE(before + 100, earliest);
  usleep(30000);
  now = tsl_os_now_ms();
  CHECK_GE(now - before, 15);
  CHECK_GE(tsl_os_now_ms(), now);
}

static void nanoseconds_are_of_the_same_clock(void) {
  uint64_t ms = tsl_os_now_ms(), ns = tsl_os_now_ns(), later = tsl_os_now_ns();
  CHECK_GE(ns / 1000000, ms);
  CHECK_LE(ns / 1000000, ms + 60000);
  CHECK_GE(later, ns);
}

static void *work(void *nothing) {
  for (uint64_t from = tsl_os_used_ns(); tsl_os_used_ns() - from < 20000000;) continue;
  return nothing;
}

// What another thread uses counts for the process, and not for this one.
static void used_time_is_told_by_thread_and_process(void) {
  pthread_t worker;
  uint64_t all_ns = tsl_os_process_used_ns(), own_ns = tsl_os_used_ns();
  CHECK_EQ(pthread_create(&worker, NULL, work, NULL), 0);
  CHECK_EQ(pthread_join(worker, NULL), 0);
  CHECK_LE(tsl_os_used_ns() - own_ns, 10000000);
  CHECK_GE(tsl_os_process_used_ns() - all_ns, 20000000);
}

static uint32_t bell;

static void *ring(void *nothing) {
  usleep(20000);
  tsl_store_relaxed(&bell, 1);
  errno = EDOM;
  tsl_os_wake(&bell);
  CHECK_EQ(errno, EDOM);
  return nothing;
}

static void sleeps_until_woken(void) {
  pthread_t ringer;
  uint64_t start = monotonic_ms();
  tsl_os_sleep_ms(&bell, 30);
  CHECK_GE(monotonic_ms() - start, 29);
  CHECK_EQ(pthread_create(&ringer, NULL, ring, NULL), 0);
  tsl_os_sleep_ms(&bell, 60000);
  CHECK_EQ(pthread_join(ringer, NULL), 0);
  tsl_os_sleep_ms(&bell, 60000);
  CHECK_LE(monotonic_ms() - start, 20000);
}

static void yield_returns(void) {
  errno = EDOM;
  tsl_os_yield();
  CHECK_EQ(errno, EDOM);
}

// Each of two sides writes its flag and reads the other's; only the second one passes a barrier. At
// least one of them sees the other.
static struct flag { TSL_ON_LINE uint32_t round; } flags[2];
static TSL_ON_LINE uint32_t arrived;
static bool seen[2][ROUNDS];

static void meet(uint32_t all) {
  tsl_add_acq_rel(&arrived, 1);
  for (unsigned spins = 1; tsl_load_acquire(&arrived) < all; spins++) {
    if (spins % 4096 == 0) sched_yield();
  }
}

static void pass_both(int side, uint32_t round) {
  (void)tsl_load_relaxed(&flags[1 - side].round);  // so that the other's line is at hand
  meet(4 * round + 2);
  for (volatile uint32_t late = round % 100 * (round / 100 % 2 == (uint32_t)side); late != 0;)
    late = late - 1;
  tsl_store_relaxed(&flags[side].round, round + 1);
  tsl_compiler_fence();
  if (side == 1) tsl_os_barrier();
  seen[side][round] = tsl_load_relaxed(&flags[1 - side].round) == round + 1;
  meet(4 * round + 4);
}

static void *pass_without_a_barrier(void *unused) {
  for (uint32_t round = 0; round < ROUNDS; round++) pass_both(0, round);
  return unused;
}

static void barrier_orders_other_threads(void) {
  pthread_t thread;
  errno = EDOM;
  bool works = tsl_os_barrier_init();
  CHECK_EQ(errno, EDOM);
  if (!works) return;
  CHECK(tsl_os_barrier_init());
  CHECK_EQ(pthread_create(&thread, NULL, pass_without_a_barrier, NULL), 0);
  for (uint32_t round = 0; round < ROUNDS; round++) pass_both(1, round);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  for (int round = 0; round < ROUNDS; round++) CHECK(seen[0][round] || seen[1][round]);
  CHECK_EQ(errno, EDOM);
}

// A child keeps what the parent asked for.
static void pass_barrier(void) {
  enum { PRIVATE_EXPEDITED = 1 << 3 };
  tsl_os_barrier();
  if (syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) != 0) _exit(EXIT_FAILURE);
}

static void barrier_works_after_fork(void) {
  bool works = tsl_os_barrier_init();
  CHECK_EQ(capture_child(pass_barrier) == 0, works);
}

int main(void) {
  RUN(clock_goes_on);
  RUN(nanoseconds_are_of_the_same_clock);
  RUN(used_time_is_told_by_thread_and_process);
  RUN(sleeps_until_woken);
  RUN(yield_returns);
  RUN(barrier_orders_other_threads);
  RUN(barrier_works_after_fork);
  return test_status();
}
