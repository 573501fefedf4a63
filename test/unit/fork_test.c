#include <dirent.h>

#include "alloc/fast.h"
#include "base/options.h"
#include "memory/segment.h"
#include "pattern.h"
#include "state.h"
#include "threads.h"

enum { BLOCKS = 200, FORKS = 12 };

// ThreadSanitizer lets no child of a program with threads have threads of its own.
#if defined(__SANITIZE_THREAD__)
enum { CHILDREN_MAY_HAVE_THREADS = false };
#else
enum { CHILDREN_MAY_HAVE_THREADS = true };
#endif

static void *blocks[BLOCKS];

static void alloc_blocks(void) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    size_t bytes = (i * i * 7) % 70000;
    blocks[i] = tsl_fast_malloc(bytes);
    CHECK(blocks[i] != NULL);
    pattern_write(blocks[i], bytes, i);
  }
}

static void check_and_free_blocks(void) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    size_t bytes = (i * i * 7) % 70000;
    CHECK(pattern_is(blocks[i], bytes, i, bytes));
    tsl_fast_free(blocks[i]);
  }
}

// Runs the function in a fork's child.
static void in_child(void (*function)(void)) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);  // a lock held for ever is a failure, too
    function();
    _exit(EXIT_SUCCESS);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

static void use_everything(void) {
  check_and_free_blocks();
  alloc_blocks();
  tsl_trim(0);
  check_and_free_blocks();
  tsl_trim(0);
}

static void use_and_check(void) {
  use_everything();
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

static void use_and_fork_again(void) {
  use_everything();
  alloc_blocks();
  in_child(use_and_check);
  use_and_check();
}

static void child_has_the_blocks(void) {
  alloc_blocks();
  in_child(use_and_fork_again);
  use_and_check();
}

static void child_before_the_first_allocation(void) {
  in_child(alloc_blocks);
  CHECK_EQ(tsl_region.span_bytes, 0);
  alloc_blocks();
  use_and_check();
}

// Registered before the library's handler, so that it runs after that one has taken its locks.
static int locks_seen;

static void look_at_locks(void) {
  if (tsl_region.units == 0) return;
  locks_seen += tsl_lock_try(&tsl_segment_at(tsl_region.first_unit / TSL_SEGMENT_UNITS)->lock);
  locks_seen += 100;
}

__attribute__((constructor(101))) static void register_first(void) {
  CHECK_EQ(pthread_atfork(look_at_locks, NULL, NULL), 0);
}

static void nothing_changes_during_a_fork(void) {
  alloc_blocks();
  locks_seen = 0;
  in_child(use_and_check);
  CHECK_EQ(locks_seen, 100);
  use_and_check();
}

static unsigned thread_count(void) {
  unsigned count = 0;
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static void start_a_helper(void) {
  CHECK_EQ(thread_count(), 1);
  check_and_free_blocks();
  alloc_blocks();
  CHECK_EQ(thread_count(), 2);
}

static void child_has_its_own_helper(void) {
  tsl_options.helper = 1;
  alloc_blocks();
  CHECK_EQ(thread_count(), 2);
  in_child(start_a_helper);
}

// Heaps of the parent's other threads serve in the child.
static uint32_t waiting, over;

static void *alloc_and_wait(void *unused) {
  void *block = tsl_fast_malloc(3000);
  tsl_add_relaxed(&waiting, 1);
  while (tsl_load_relaxed(&over) == 0) usleep(1000);
  tsl_fast_free(block);
  return unused;
}

static void take_the_pooled_heap(void) {
  tsl_heap_current = &tsl_heap_empty;
  (void)tsl_fast_malloc(3000);
  CHECK(tsl_heap_current != &tsl_heap_empty);
  CHECK_LE(tsl_heap_current->number, 2);
  CHECK_EQ(tsl_region.last_heap, 2);
}

static void heaps_without_a_thread_are_pooled(void) {
  pthread_t thread;
  (void)tsl_fast_malloc(1);
  CHECK_EQ(pthread_create(&thread, NULL, alloc_and_wait, NULL), 0);
  while (tsl_load_relaxed(&waiting) == 0) usleep(1000);
  in_child(take_the_pooled_heap);
  tsl_store_relaxed(&over, 1);
  pthread_join(thread, NULL);
}

// Forks while other threads are in the middle of everything.
static void *be_busy(void *unused) {
  uint64_t seed = tsl_add_relaxed(&waiting, 1);
  void *mine[100] = {NULL};
  while (tsl_load_relaxed(&over) == 0) {
    void **slot = &mine[test_random_below(&seed, 100)];
    tsl_fast_free(*slot);
    *slot = tsl_fast_malloc(test_random_below(&seed, test_random_below(&seed, 50) ? 2000 : 200000));
    CHECK(*slot != NULL);
    if (test_random_below(&seed, 5000) == 0) tsl_trim(0);
  }
  for (int i = 0; i < 100; i++) tsl_fast_free(mine[i]);
  return unused;
}

static void fork_often(uint64_t helper) {
  pthread_t threads[THREADS];
  tsl_options.helper = helper;
  tsl_options.purge_delay_ms = 1;
  alloc_blocks();
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, be_busy, NULL);
  for (int i = 0; i < FORKS; i++) in_child(use_everything);
  tsl_store_relaxed(&over, 1);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  use_everything();
  if (helper == 0) state_check();
}
static void busy_threads(void) { fork_often(0); }
static void busy_threads_and_helper(void) { fork_often(1); }

int main(void) {
  RUN(child_has_the_blocks);
  RUN(child_before_the_first_allocation);
  RUN(nothing_changes_during_a_fork);
  if (CHILDREN_MAY_HAVE_THREADS) RUN(child_has_its_own_helper);
  RUN(heaps_without_a_thread_are_pooled);
  RUN(busy_threads);
  if (CHILDREN_MAY_HAVE_THREADS) RUN(busy_threads_and_helper);
  return test_status();
}
