#include "base/options.h"
#include "forks.h"
#include "memory/segment.h"
#include "os/os.h"
#include "state.h"
#include "tasks.h"
#include "threads.h"
#include "tslab.h"

// ThreadSanitizer lets no child of a program with threads have threads of its own.
#if defined(__SANITIZE_THREAD__)
enum { CHILDREN_MAY_HAVE_THREADS = false };
#else
enum { CHILDREN_MAY_HAVE_THREADS = true };
#endif

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

// Handlers that were registered before the library's: the last before a fork, the first in the
// child.
static void (*last_before)(void), (*first_in_child)(void);
static unsigned handlers_ran;

static void run(void (*handler)(void)) {
  if (handler != NULL) handler();
  handlers_ran += handler != NULL;
}
static void run_before(void) { run(last_before); }
static void run_in_child(void) { run(first_in_child); }

__attribute__((constructor(101))) static void register_first(void) {
  CHECK_EQ(pthread_atfork(run_before, NULL, run_in_child), 0);
}

static void use_everything_anew(void) {
  use_everything();
  alloc_blocks();
}

static void check_handlers(void) {
  CHECK_EQ(handlers_ran, 2);
  use_and_check();
}

static void handlers_may_allocate(void) {
  alloc_blocks();
  last_before = first_in_child = use_everything_anew;
  in_child(check_handlers);
  CHECK_EQ(handlers_ran, 1);
}

// The child finds a lock that is held by a thread which it does not have; the first to come to it
// may be a handler that runs before the library's.
static uint32_t waiting, over;

static void *hold_a_lock(void *unused) {
  struct tsl_segment *segment = tsl_segment_at(tsl_region.first_unit / TSL_SEGMENT_UNITS);
  tsl_lock_acquire(&segment->lock);
  tsl_store_release(&waiting, 1);
  while (tsl_load_relaxed(&over) == 0) usleep(1000);
  tsl_lock_release(&segment->lock);
  return unused;
}

static void free_a_large_block(void) { tsl_fast_free(blocks[BLOCKS]); }

static void locks_of_lost_threads_are_taken_over(void) {
  pthread_t thread;
  tsl_options.detain_ms = 0;  // what is freed goes to the segment at once
  alloc_blocks();
  blocks[BLOCKS] = tsl_fast_malloc(100000);
  CHECK_EQ(pthread_create(&thread, NULL, hold_a_lock, NULL), 0);
  while (tsl_load_acquire(&waiting) == 0) usleep(1000);
  in_child(free_a_large_block);
  first_in_child = free_a_large_block;
  in_child(use_and_check);
  tsl_store_relaxed(&over, 1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void start_a_helper(void) {
  CHECK_EQ(tasks_count(), 1);
  check_and_free_blocks();
  alloc_blocks();
  CHECK_EQ(tasks_count(), 2);
}

static void child_has_its_own_helper(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  alloc_blocks();
  CHECK_EQ(tasks_count(), 2);
  in_child(start_a_helper);
}

// Heaps of the parent's other threads serve in the child.
static void *alloc_and_wait(void *unused) {
  void *block = tsl_fast_malloc(3000);
  tsl_add_relaxed(&waiting, 1);
  while (tsl_load_relaxed(&over) == 0) usleep(1000);
  tsl_fast_free(block);
  return unused;
}

static void take_the_pooled_heap(void) {
  tsl_heap_current = &tsl_home_empty.heap;
  (void)tsl_fast_malloc(3000);
  CHECK(tsl_heap_current != &tsl_home_empty.heap);
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
  if (helper == TSL_HELPER_NEVER) state_check();
}
static void busy_threads(void) { fork_often(TSL_HELPER_NEVER); }
static void busy_threads_and_helper(void) { fork_often(TSL_HELPER_ALWAYS); }

// The child finds a rotation whole, though another thread turned it at that moment.
static tslab_rotation rotation = {.label = "turns", .every_requests = 2};

static void *turn_often(void *unused) {
  while (tsl_load_relaxed(&over) == 0) {
    tslab_free(tslab_epoch_malloc(tslab_rotation_current(&rotation), 100));
    tsl_store_relaxed(&waiting, 1);
  }
  return unused;
}

static void turn_and_end(void) {
  CHECK(tslab_rotation_advance(&rotation) != TSLAB_NO_EPOCH);
  tslab_rotation_end(&rotation);
}

static void rotations_turn_in_the_child(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, turn_often, NULL), 0);
  while (tsl_load_relaxed(&waiting) == 0) usleep(1000);
  for (int i = 0; i < FORKS; i++) in_child(turn_and_end);
  tsl_store_relaxed(&over, 1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  tslab_rotation_end(&rotation);
}

static void a_fork_wipes_the_mark(void) {
  uint32_t *mark = tsl_os_fork_mark();
  int status;
  CHECK(mark != NULL);
  CHECK_EQ(*mark, 0);
  *mark = 7;
  pid_t child = fork();
  if (child == 0) {
    bool is_wiped = *mark == 0;
    *mark = 8;
    _exit(is_wiped && *mark == 8 ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  CHECK_EQ(*mark, 7);
}

int main(void) {
  tsl_options.helper = TSL_HELPER_NEVER;  // the state of heaps is compared; some tests want one
  RUN(a_fork_wipes_the_mark);
  RUN(child_has_the_blocks);
  RUN(child_before_the_first_allocation);
  RUN(handlers_may_allocate);
  RUN(locks_of_lost_threads_are_taken_over);
  if (CHILDREN_MAY_HAVE_THREADS) RUN(child_has_its_own_helper);
  RUN(heaps_without_a_thread_are_pooled);
  RUN(rotations_turn_in_the_child);
  RUN(busy_threads);
  if (CHILDREN_MAY_HAVE_THREADS) RUN(busy_threads_and_helper);
  return test_status();
}
