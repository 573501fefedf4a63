#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "epochs.h"
#include "memory/segment.h"
#include "os/os.h"
#include "pattern.h"
#include "state.h"
#include "tasks.h"
#include "threads.h"

enum { BLOCKS = 200, FORKS = 12 };

// ThreadSanitizer lets no child of a program with threads have threads of its own.
#if defined(__SANITIZE_THREAD__)
enum { CHILDREN_MAY_HAVE_THREADS = false };
#else
enum { CHILDREN_MAY_HAVE_THREADS = true };
#endif

static void *blocks[BLOCKS + 1];  // the last one is for special uses

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

// Epochs. The child goes on where the parent's thread was.
static tslab_epoch epoch;
static tslab_scope scope;

static void enter_and_alloc(void) {
  epoch = epochs_open();
  epochs_enter(&scope, epoch);
  alloc_blocks();
}

static void go_on_and_leave(void) {
  CHECK_EQ(tslab_epoch_current(), epoch);
  void *block = tslab_malloc(100);
  CHECK_EQ(tslab_epoch_of(block), epoch);
  check_and_free_blocks();
  alloc_blocks();
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  epochs_close(epoch, BLOCKS + 1);
  tslab_free(block);
  check_and_free_blocks();
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void release_and_leave(void) {
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void child_stays_in_its_epoch(void) {
  enter_and_alloc();
  in_child(go_on_and_leave);
  in_child(release_and_leave);
  go_on_and_leave();
}

// Survivors of a closed epoch are the child's own, too.
static void free_survivors(void) {
  check_and_free_blocks();
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void release_survivors(void) {
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void child_has_the_survivors(void) {
  enter_and_alloc();
  epochs_leave(&scope);
  epochs_close(epoch, BLOCKS);
  in_child(free_survivors);
  in_child(release_survivors);
  free_survivors();
}

// The parent's other thread is inside; nobody is in the child. Free blocks that the thread had at
// hand are given up: only small blocks, which lie in cells, are counted exactly.
static size_t most_bytes;

static void *stay_inside(void *unused) {
  static tslab_scope first, second;
  epochs_enter(&first, epoch);
  epochs_enter(&second, epoch);
  for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = epochs_alloc(epoch, i * 131 % most_bytes);
  tsl_add_acq_rel(&waiting, 1);
  while (tsl_load_relaxed(&over) == 0) usleep(1000);
  epochs_leave(&second);
  epochs_leave(&first);
  return unused;
}

static void free_all(void) {
  for (unsigned i = 0; i < BLOCKS; i++) epochs_free(blocks[i], i * 131 % most_bytes);
}

static void close_and_free(void) {
  CHECK_EQ(epochs_stats(epoch).scopes, 0);
  epochs_close(epoch, BLOCKS);
  free_all();
  CHECK(epochs_is_over(epoch));
}

static void free_all_until_over(void) {
  CHECK_EQ(epochs_stats(epoch).live_objects, BLOCKS);
  free_all();
  CHECK(epochs_is_over(epoch));
}

static void close_and_release(void) {
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, 0);
  CHECK_GE(left.objects, BLOCKS);
  free_all();
  int error = tslab_epoch_release(epoch);
  CHECK(error == 0 || error == ESTALE);
  CHECK(epochs_is_over(epoch));
}

static void release_all(void) {
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(epochs_is_over(epoch));
  CHECK_EQ(tslab_epoch_of(blocks[0]), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(blocks[BLOCKS - 1]), TSLAB_NO_EPOCH);
}

static void fork_with_somebody_inside(size_t bytes, bool close, void (*in_the_child)(void)) {
  pthread_t thread;
  most_bytes = bytes;
  epoch = epochs_open();
  CHECK_EQ(pthread_create(&thread, NULL, stay_inside, NULL), 0);
  while (tsl_load_acquire(&waiting) == 0) usleep(1000);
  if (close) CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  in_child(in_the_child);
  tsl_store_relaxed(&over, 1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  if (!close) epochs_close(epoch, BLOCKS);
  free_all();
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}
static void child_closes_epochs_of_other_threads(void) {
  fork_with_somebody_inside(2000, false, close_and_free);
}
static void child_seals_what_others_were_to_seal(void) {
  fork_with_somebody_inside(2000, true, free_all_until_over);
}
static void child_releases_epochs_of_other_threads(void) {
  fork_with_somebody_inside(70000, false, release_all);
}
static void child_closes_and_releases_epochs_of_other_threads(void) {
  fork_with_somebody_inside(70000, false, close_and_release);
}
static void child_releases_what_others_were_to_seal(void) {
  fork_with_somebody_inside(70000, true, release_all);
}

// Another thread may be giving dead pages of the epoch back: it is over when that is done.
static void wait_until_over(tslab_epoch ended) {
  for (int i = 0; i < 10000 && !epochs_is_over(ended); i++) usleep(1000);
  CHECK(epochs_is_over(ended));
}

// Forks while other threads open, fill and end epochs.
static void live_an_epoch(uint64_t *seed) {
  void *mine[30];
  tslab_scope stay;
  tslab_epoch own = epochs_open();
  epochs_enter(&stay, own);
  for (int i = 0; i < 30; i++)
    mine[i] = tslab_malloc(test_random_below(seed, i == 7 ? 99999 : 999));
  for (int i = 0; i < 30; i += 2) tslab_free(mine[i]);
  epochs_leave(&stay);
  if (test_random_below(seed, 3) == 0) {
    CHECK_EQ(tslab_epoch_release(own), 0);
  } else {
    epochs_close(own, 15);
    for (int i = 1; i < 30; i += 2) tslab_free(mine[i]);
  }
  wait_until_over(own);
}

static void *live_in_epochs(void *unused) {
  uint64_t seed = tsl_add_relaxed(&waiting, 1);
  while (tsl_load_relaxed(&over) == 0) live_an_epoch(&seed);
  return unused;
}

static int release_one(tslab_epoch found, void *unused) {
  (void)unused;
  int error = tslab_epoch_release(found);
  CHECK(error == 0 || error == ESTALE || error == EBUSY);
  return 0;
}

static void live_in_the_child(void) {
  uint64_t seed = 9;
  CHECK_EQ(tslab_epochs_each(release_one, NULL), 0);
  for (int i = 0; i < 100; i++) live_an_epoch(&seed);
  use_everything();
}

static void busy_threads_in_epochs(void) {
  pthread_t threads[THREADS];
  alloc_blocks();
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, live_in_epochs, NULL);
  for (int i = 0; i < 5 * FORKS; i++) in_child(live_in_the_child);
  tsl_store_relaxed(&over, 1);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  check_and_free_blocks();
  epochs_check_all_free();
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
  RUN(child_stays_in_its_epoch);
  RUN(child_has_the_survivors);
  RUN(child_closes_epochs_of_other_threads);
  RUN(child_releases_epochs_of_other_threads);
  RUN(child_seals_what_others_were_to_seal);
  RUN(child_closes_and_releases_epochs_of_other_threads);
  RUN(child_releases_what_others_were_to_seal);
  RUN(busy_threads);
  RUN(busy_threads_in_epochs);
  if (CHILDREN_MAY_HAVE_THREADS) RUN(busy_threads_and_helper);
  return test_status();
}
