#include "alloc/fast.h"
#include "base/options.h"
#include "memory/segment.h"
#include "pattern.h"
#include "state.h"
#include "threads.h"

enum { BLOCKS = 200, FORKS = 12 };

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
#if !defined(__SANITIZE_THREAD__)  // which lets no child of a program with threads have threads
static void busy_threads_and_helper(void) { fork_often(1); }
#else
static void busy_threads_and_helper(void) { CHECK(true); }
#endif

int main(void) {
  RUN(child_has_the_blocks);
  RUN(child_before_the_first_allocation);
  RUN(heaps_without_a_thread_are_pooled);
  RUN(busy_threads);
  RUN(busy_threads_and_helper);
  return test_status();
}
