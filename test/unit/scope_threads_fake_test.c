#include "base/options.h"
#include "epoch/scope.h"
#include "epochs.h"
#include "takes.h"
#include "threads.h"

enum { BYTES = 100, BLOCKS = 8, RACES = 300, MOST_TAKEN = 4000 };

static void *enter_once(void *epoch) {
  tslab_scope scope;
  epochs_enter(&scope, *(tslab_epoch *)epoch);
  epochs_leave(&scope);
  return NULL;
}

static uint32_t *remembered(tslab_epoch epoch) {
  return &tsl_heap_current->home->own->parts[tsl_epoch_slot(epoch) % TSL_HOME_PARTS];
}

// A thread whose heap is not the first of an epoch's finds it again without looking at the others;
// what it remembers of an epoch that has ended does not count.
static void found_heaps_are_remembered(void) {
  tslab_scope scope;
  for (int life = 0; life < 3; life++) {
    tslab_epoch epoch = epochs_open();
    epochs_enter(&scope, epoch);
    uint32_t mine = tsl_heap_current->number;
    epochs_leave(&scope);
    threads_run_one(enter_once, &epoch);
    CHECK_NE(tsl_epoch_at(tsl_epoch_slot(epoch))->heaps, mine);
    *remembered(epoch) = 0;
    for (int round = 0; round < 3; round++) {
      epochs_enter(&scope, epoch);
      CHECK_EQ(tsl_heap_current->number, mine);
      CHECK_EQ(*remembered(epoch), mine);
      epochs_leave(&scope);
    }
    epochs_close(epoch, 0);
    CHECK(epochs_is_over(epoch));
  }
  epochs_check_all_free();
}

// Threads that stay at the same time.
static pthread_barrier_t meeting;
static tslab_epoch shared;
static void *blocks[THREADS * BLOCKS];
static uint32_t taken;

static void *stay_together(void *unused) {
  tslab_scope scope, again;
  epochs_enter(&scope, shared);
  for (int i = 0; i < BLOCKS; i++) {
    void *block = tslab_malloc(BYTES);
    CHECK_EQ(tslab_epoch_of(block), shared);
    pattern_write(block, BYTES, BYTES);
    blocks[tsl_add_relaxed(&taken, 1)] = block;
  }
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);
  epochs_enter(&again, shared);
  CHECK(again.heap == scope.heap);
  epochs_leave(&again);
  epochs_leave(&scope);
  return unused;
}

static void threads_stay_in_one_epoch(void) {
  pthread_t threads[THREADS];
  shared = epochs_open();
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, stay_together, NULL);
  pthread_barrier_wait(&meeting);
  tslab_epoch_stats stats = epochs_stats(shared);
  pthread_barrier_wait(&meeting);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_EQ(stats.threads, THREADS);
  CHECK_EQ(stats.scopes, THREADS);
  CHECK_EQ(epochs_stats(shared).scopes, 0);
  epochs_close(shared, THREADS * BLOCKS);
  for (int i = 0; i < THREADS * BLOCKS; i++) epochs_free(blocks[i], BYTES);
  CHECK(epochs_is_over(shared));
  epochs_check_all_free();
}

// A thread that ends in the middle of its scopes.
static tslab_epoch entered[2];

static void *end_inside(void *close) {
  static tslab_scope scopes[4];
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;  // it should leave them
  for (int i = 0; i < 4; i++) {
    epochs_enter(&scopes[i], entered[i % 2]);
    blocks[i] = tslab_malloc(BYTES);
  }
  if (close != NULL) CHECK_EQ(tslab_epoch_close(entered[1]).error, 0);
  return NULL;
}

static void threads_leave_their_scopes_when_they_end(void) {
  entered[0] = epochs_open();
  entered[1] = epochs_open();
  threads_run_one(end_inside, NULL);
  CHECK_EQ(epochs_stats(entered[0]).scopes, 0);
  CHECK_EQ(epochs_stats(entered[1]).scopes, 0);
  epochs_close(entered[0], 2);
  epochs_close(entered[1], 2);
  for (int i = 0; i < 4; i++) tslab_free(blocks[i]);
  CHECK(epochs_is_over(entered[0]) && epochs_is_over(entered[1]));
  epochs_check_all_free();
}

static void ending_threads_seal_what_was_closed_meanwhile(void) {
  entered[0] = epochs_open();
  entered[1] = epochs_open();
  threads_run_one(end_inside, &blocks);
  for (int i = 0; i < 4; i++) tslab_free(blocks[i]);
  CHECK(epochs_is_over(entered[1]));
  CHECK_EQ(epochs_stats(entered[0]).live_objects, 0);
  epochs_close(entered[0], 0);
  CHECK(epochs_is_over(entered[0]));
  epochs_check_all_free();
}

static void *stay_briefly(void *result) {
  tslab_scope scope;
  epochs_enter(&scope, shared);
  *(void **)result = tslab_malloc(BYTES);
  blocks[0] = scope.heap;
  epochs_leave(&scope);
  return NULL;
}

// A later thread takes the ended one's heaps, those of its epochs included.
static void later_threads_go_on_in_the_same_heap(void) {
  char *first, *second;
  shared = epochs_open();
  threads_run_one(stay_briefly, &first);
  void *heap = blocks[0];
  uint32_t heaps = tsl_region.last_heap;
  threads_run_one(stay_briefly, &second);
  CHECK(blocks[0] == heap);
  CHECK_EQ(tsl_region.last_heap, heaps);
  CHECK_EQ(epochs_stats(shared).threads, 1);
  if (!TSL_SECURE) CHECK(second == first + takes(BYTES));
  tslab_free(first);
  epochs_close(shared, 1);
  tslab_free(second);
  CHECK(epochs_is_over(shared));
}

// Our destructor runs first, since its key was made first.
static pthread_key_t key;
static bool destructor_ran;

static void use_epochs_late(void *value) {
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, shared), EPERM);
  CHECK_EQ(tslab_scope_default(&scope), EPERM);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  void *block = epochs_alloc(shared, BYTES);
  CHECK_EQ(tslab_epoch_of(block), shared);
  epochs_free(block, BYTES);
  epochs_free(value, BYTES);
  tslab_epoch own = epochs_open();
  epochs_free(epochs_alloc(own, BYTES), BYTES);
  epochs_close(own, 0);
  CHECK(epochs_is_over(own));
  destructor_ran = true;
}

static void *leave_to_the_destructor(void *unused) {
  CHECK_EQ(pthread_setspecific(key, epochs_alloc(shared, BYTES)), 0);
  return unused;
}

static void nobody_enters_after_the_threads_destructors(void) {
  shared = epochs_open();
  CHECK_EQ(pthread_key_create(&key, use_epochs_late), 0);
  threads_run_one(leave_to_the_destructor, NULL);
  CHECK(destructor_ran);
  CHECK_EQ(epochs_stats(shared).scopes, 0);
  epochs_close(shared, 0);
  CHECK(epochs_is_over(shared));
}

// Threads enter and allocate until the epoch is closed under them; some end inside.
static void *results[MOST_TAKEN];

static void take(void *block) {
  CHECK(block != NULL);
  uint32_t at = tsl_add_relaxed(&taken, 1);
  if (at < MOST_TAKEN) tsl_store_relaxed(&results[at], block);
  if (at >= MOST_TAKEN) tslab_free(block);
}

static void *stay_until_closed(void *number) {
  tslab_scope scope;
  int error;
  pthread_barrier_wait(&meeting);
  while ((error = tslab_scope_enter(&scope, shared)) == 0) {
    take(tslab_malloc(BYTES));
    tslab_free(tslab_malloc(BYTES));
    if (number != NULL && tslab_scope_default(&scope) == 0) return NULL;
    epochs_leave(&scope);
  }
  CHECK(error == ECANCELED || error == ESTALE);
  return NULL;
}

// The thread is in no scope: it visits its heap until the epoch is closed under it, and frees after
// that, too.
static void *visit_until_closed(void *unused) {
  void *kept[BLOCKS] = {NULL};
  pthread_barrier_wait(&meeting);
  for (unsigned i = 0;; i = (i + 1) % BLOCKS) {
    tslab_free(kept[i]);
    kept[i] = tslab_epoch_malloc(shared, BYTES);
    if (kept[i] == NULL) break;
  }
  CHECK(errno == ECANCELED || errno == ESTALE);
  for (unsigned i = 0; i < BLOCKS; i++) tslab_free(kept[i]);
  return unused;
}

static void race_with_the_end(int race, void *(*work)(void *)) {
  pthread_t threads[THREADS];
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;  // those that end inside should leave
  shared = epochs_open();
  taken = 0;
  for (int i = 0; i < THREADS; i++) {
    void *ends_inside = i < race % THREADS ? &results : NULL;
    CHECK_EQ(pthread_create(&threads[i], NULL, work, ends_inside), 0);
  }
  pthread_barrier_wait(&meeting);
  for (volatile int wait = 0; wait < race * 20; wait = wait + 1) continue;
  CHECK_EQ(tslab_epoch_close(shared).error, 0);
  for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  for (uint32_t i = 0; i < taken && i < MOST_TAKEN; i++) tslab_free(results[i]);
  CHECK(epochs_is_over(shared));
}

static void closing_races_with_entering(void) {
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int race = 0; race < RACES; race++) race_with_the_end(race, stay_until_closed);
  // Each thread has a home heap, may look at a pooled one, and each of these has one part.
  CHECK_LE(tsl_region.last_heap, 4 * (THREADS + 1));
  epochs_check_all_free();
}

static void closing_races_with_visits(void) {
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int race = 0; race < RACES; race++) race_with_the_end(race, visit_until_closed);
  // Each thread has a home heap, may look at a pooled one, and each of these has one part.
  CHECK_LE(tsl_region.last_heap, 4 * (THREADS + 1));
  epochs_check_all_free();
}

// The thread leaves while the epoch is released: each of them ends a part, nobody the same one.
static void *leave_while_released(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, shared);
  for (int i = 0; i < 4 * BLOCKS; i++) CHECK(tslab_malloc(i % 2 == 0 ? BYTES : 70000) != NULL);
  pthread_barrier_wait(&meeting);
  epochs_leave(&scope);
  return unused;
}

static void releasing_races_with_leaving(void) {
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int race = 0; race < RACES; race++) {
    pthread_t threads[THREADS];
    shared = epochs_open();
    for (int i = 0; i < THREADS; i++)
      CHECK_EQ(pthread_create(&threads[i], NULL, leave_while_released, NULL), 0);
    pthread_barrier_wait(&meeting);
    CHECK_EQ(tslab_epoch_release(shared), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK(epochs_is_over(shared));
  }
  epochs_check_all_free();
}

int main(void) {
  RUN(found_heaps_are_remembered);
  RUN(threads_stay_in_one_epoch);
  RUN(threads_leave_their_scopes_when_they_end);
  RUN(ending_threads_seal_what_was_closed_meanwhile);
  RUN(later_threads_go_on_in_the_same_heap);
  RUN(nobody_enters_after_the_threads_destructors);
  RUN(closing_races_with_entering);
  RUN(closing_races_with_visits);
  RUN(releasing_races_with_leaving);
  return test_status();
}
