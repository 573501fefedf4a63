// Epochs of the child of a fork.
#include "base/options.h"
#include "epochs.h"
#include "forks.h"
#include "threads.h"

static uint32_t waiting, over;

// The child goes on where the parent's thread was.
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

int main(void) {
  tsl_options.helper = TSL_HELPER_NEVER;  // the state of heaps is compared
  RUN(child_stays_in_its_epoch);
  RUN(child_has_the_survivors);
  RUN(child_closes_epochs_of_other_threads);
  RUN(child_releases_epochs_of_other_threads);
  RUN(child_seals_what_others_were_to_seal);
  RUN(child_closes_and_releases_epochs_of_other_threads);
  RUN(child_releases_what_others_were_to_seal);
  RUN(busy_threads_in_epochs);
  return test_status();
}
