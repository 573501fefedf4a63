#include "epoch/scope.h"

#include "base/options.h"
#include "epochs.h"
#include "os_fake.h"
#include "takes.h"
#include "threads.h"

enum { DEPTH = 300, BYTES = 100, BLOCKS = 8, RACES = 300, MOST_TAKEN = 4000 };

static void everybody_begins_in_the_default_epoch(void) {
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

// The fake has no barrier.
static void scopes_pay_for_a_fence(void) {
  CHECK(!tsl_scope_fences);
  epochs_open();
  CHECK(tsl_scope_fences);
}

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

static void plain_allocations_land_in_the_epoch(void) {
  static const size_t sizes[] = {0, 1, 1000, 5000, 9000, 40000, 3 << 20};
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    epochs_enter(&scope, epoch);
    CHECK_EQ(scope.epoch, epoch);
    void *block = tslab_malloc(sizes[i]);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    epochs_leave(&scope);
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_of(tslab_malloc(sizes[i])), TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_of(block), epoch);
    tslab_free(block);
  }
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void scopes_nest_to_any_depth(void) {
  static tslab_scope scopes[DEPTH];
  tslab_epoch epochs[] = {TSLAB_DEFAULT, epochs_open(), epochs_open()};
  unsigned stays[3] = {0};
  for (int i = 0; i < DEPTH; i++) {
    epochs_enter(&scopes[i], epochs[i * i % 7 % 3]);
    stays[i * i % 7 % 3]++;
  }
  CHECK_EQ(epochs_stats(epochs[1]).scopes, stays[1]);
  CHECK_EQ(epochs_stats(epochs[2]).scopes, stays[2]);
  for (int i = DEPTH; i-- != 0;) {
    CHECK_EQ(tslab_epoch_current(), epochs[i * i % 7 % 3]);
    CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), epochs[i * i % 7 % 3]);
    epochs_leave(&scopes[i]);
  }
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(epochs_stats(epochs[1]).scopes + epochs_stats(epochs[2]).scopes, 0);
}

static void visits_go_to_the_threads_own_heap(void) {
  tslab_epoch epochs[] = {EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED), epochs_open()};
  for (unsigned i = 0; i < 2; i++) {
    tslab_scope scope;
    epochs_enter(&scope, epochs[i]);
    struct tsl_heap *part = tsl_heap_current;
    void *inside = epochs_alloc(epochs[i], BYTES);
    epochs_leave(&scope);
    void *outside = epochs_alloc(epochs[i], BYTES);
    CHECK_EQ(tslab_epoch_of(outside), epochs_stats(epochs[i]).place);
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    CHECK_EQ(part->depth, 0);
    epochs_free(inside, BYTES);
    epochs_free(outside, BYTES);
    CHECK_EQ(part->depth, 0);
    epochs_close(epochs[i], 0);
    CHECK(epochs_is_over(epochs[i]));
  }
}

// A heap in which nobody is may have been sealed by another thread, and the epoch's record may be
// that of a later one.
static void sealed_heaps_are_not_visited(void) {
  tslab_epoch ended = epochs_open();
  void *block = epochs_alloc(ended, BYTES);
  struct tsl_heap *part = tsl_scope_heap(tsl_epoch_slot(ended));
  CHECK(part != NULL);
  epochs_close(ended, 1);
  CHECK(!tsl_scope_visit_begin(part, ended));
  CHECK_EQ(part->depth, 0);
  CHECK(tslab_epoch_malloc(ended, BYTES) == NULL);
  CHECK_EQ(errno, ECANCELED);
  epochs_free(block, BYTES);
  CHECK(epochs_is_over(ended));
  epochs_check_all_free();
}

static void leaving_in_the_wrong_order_is_refused(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch one = epochs_open(), two = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, one);
  epochs_enter(&inner, two);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_epoch_current(), two);
  CHECK_EQ(epochs_stats(one).scopes, 1);
  CHECK_EQ(epochs_stats(two).scopes, 1);
  epochs_leave(&inner);
  epochs_leave(&outer);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void leaving_in_the_wrong_order_is_refused_in_one_epoch(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch epoch = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, epoch);
  epochs_enter(&inner, epoch);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_epoch_current(), epoch);
  CHECK_EQ(epochs_stats(epoch).scopes, 2);
  epochs_leave(&inner);
  CHECK_EQ(tslab_epoch_current(), epoch);
  epochs_leave(&outer);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void scopes_are_left_once(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_scope never = {0}, scope;
  CHECK_EQ(tslab_scope_leave(&never), EPERM);
  epochs_enter(&scope, epochs_open());
  CHECK_EQ(tslab_scope_leave(&never), EPERM);
  epochs_leave(&scope);
  CHECK_EQ(tslab_scope_leave(&scope), EPERM);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void the_default_scope_is_a_way_out(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch epoch = epochs_open();
  tslab_scope scope, out;
  epochs_enter(&scope, epoch);
  CHECK_EQ(tslab_scope_default(&out), 0);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  void *kept = tslab_malloc(BYTES);
  CHECK_EQ(tslab_scope_leave(&scope), EPERM);
  epochs_leave(&out);
  CHECK_EQ(tslab_epoch_current(), epoch);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_of(kept), TSLAB_DEFAULT);
  epochs_close(epoch, 0);
}

// The caller's struct, the thread and the epoch's counts are as before.
static void check_refused(tslab_epoch epoch, int error) {
  tslab_scope scope, before;
  memset(&scope, 0x5a, sizeof scope);
  before = scope;
  struct tsl_heap *current = tsl_heap_current;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), error);
  CHECK(scope.epoch == before.epoch && scope.heap == before.heap);
  CHECK(scope.outer == before.outer && scope.depth == before.depth);
  CHECK(tsl_heap_current == current);
}

static void ids_of_no_open_epoch_are_refused(void) {
  tslab_epoch open = epochs_open(), closed = epochs_open(), over = epochs_open();
  tslab_scope scope;
  void *survivor = epochs_alloc(closed, BYTES);
  epochs_close(closed, 1);
  epochs_close(over, 0);
  for (int inside = 0; inside < 2; inside++) {
    check_refused(closed, ECANCELED);
    check_refused(over, ESTALE);
    check_refused(TSLAB_NO_EPOCH, ESTALE);
    check_refused(open + ((tslab_epoch)1 << TSL_EPOCH_SLOT_BITS), ESTALE);
    check_refused(1000000, ESTALE);
    check_refused((tslab_epoch)1 << TSL_EPOCH_SLOT_BITS, ESTALE);
    if (inside == 0) epochs_enter(&scope, open);
  }
  CHECK_EQ(epochs_stats(open).scopes, 1);
  epochs_leave(&scope);
  tslab_free(survivor);
  check_refused(closed, ESTALE);
}

// The heap of the slot's next epoch is the thread's as well.
static void ids_of_an_earlier_epoch_of_the_slot_are_refused(void) {
  tslab_epoch earlier = epochs_open();
  epochs_close(earlier, 0);
  tslab_epoch later = epochs_open();
  CHECK_EQ(tsl_epoch_slot(later), tsl_epoch_slot(earlier));
  void *block = epochs_alloc(later, BYTES);
  check_refused(earlier, ESTALE);
  CHECK(tsl_scope_find(later) != NULL && tsl_scope_find(earlier) == NULL);
  CHECK_EQ(epochs_stats(later).scopes, 0);
  CHECK_REFUSED(tslab_epoch_malloc(earlier, 1), ESTALE);
  epochs_close(later, 1);
  check_refused(earlier, ESTALE);
  check_refused(later, ECANCELED);
  tslab_free(block);
  CHECK(epochs_is_over(later));
}

static void a_thread_has_one_heap_in_an_epoch(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope, again;
  epochs_enter(&scope, epoch);
  void *heap = scope.heap;
  epochs_enter(&again, epoch);
  CHECK(again.heap == heap);
  epochs_leave(&again);
  epochs_leave(&scope);
  for (int i = 0; i < 10; i++) {
    epochs_enter(&scope, epoch);
    CHECK(scope.heap == heap);
    epochs_leave(&scope);
  }
  CHECK_EQ(epochs_stats(epoch).threads, 1);
  CHECK_EQ(tsl_region.last_heap, 2);
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

static bool is_sealed(const void *heap) {
  return tsl_load_relaxed(&((const struct tsl_part *)heap)->sealing) != 0;
}

static void leaving_seals_what_was_closed_meanwhile(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, epoch);
  struct tsl_heap *heap = outer.heap;
  void *before = tslab_malloc(BYTES);
  epochs_enter(&inner, epoch);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(tslab_epoch_current(), epoch);
  void *after = tslab_malloc(BYTES), *large = tslab_malloc(100000);
  CHECK_EQ(tslab_epoch_of(after), epoch);
  CHECK_EQ(tslab_epoch_of(large), epoch);
  check_refused(epoch, ECANCELED);
  epochs_leave(&inner);
  CHECK(!is_sealed(heap));
  epochs_leave(&outer);
  CHECK(is_sealed(heap));
  CHECK_EQ(heap->cells, 0);
  CHECK_EQ(heap->slabs, 0);
  tslab_free(before);
  tslab_free(large);
  CHECK(!epochs_is_over(epoch));
  tslab_free(after);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void leaving_an_empty_heap_ends_the_epoch(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  tslab_free(tslab_malloc(BYTES));
  epochs_close(epoch, 0);
  CHECK(!epochs_is_over(epoch));
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void leaving_ends_what_was_released_meanwhile(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (int i = 0; i < 1000; i++) CHECK(tslab_malloc(BYTES) != NULL);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_RELEASED);
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void large_blocks_of_who_was_inside_end_with_the_rest(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(tslab_malloc(100000) != NULL);
  epochs_leave(&scope);
  CHECK(epochs_is_over(epoch));
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

static void no_memory_for_a_heap(void) {
  tslab_epoch epoch;
  tslab_scope scope, refused;
  epochs_enter(&scope, epochs_open());
  do {
    epoch = epochs_open();
    if (tsl_region.last_heap % 16 == 15) os_fake_fail_all(OS_FAKE_COMMIT);
    CHECK_LE(tsl_region.last_heap, 200);
  } while (tslab_scope_enter(&refused, epoch) == 0 && tslab_scope_leave(&refused) == 0);
  check_refused(epoch, ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, BYTES), ENOMEM);
  CHECK_EQ(epochs_stats(epoch).threads, 0);
  os_fake_recover();
  epochs_enter(&refused, epoch);
  epochs_leave(&refused);
  epochs_leave(&scope);
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
  RUN(everybody_begins_in_the_default_epoch);
  RUN(scopes_pay_for_a_fence);
  RUN(found_heaps_are_remembered);
  RUN(plain_allocations_land_in_the_epoch);
  RUN(scopes_nest_to_any_depth);
  RUN(visits_go_to_the_threads_own_heap);
  RUN(sealed_heaps_are_not_visited);
  RUN(leaving_in_the_wrong_order_is_refused);
  RUN(leaving_in_the_wrong_order_is_refused_in_one_epoch);
  RUN(scopes_are_left_once);
  RUN(the_default_scope_is_a_way_out);
  RUN(ids_of_no_open_epoch_are_refused);
  RUN(ids_of_an_earlier_epoch_of_the_slot_are_refused);
  RUN(a_thread_has_one_heap_in_an_epoch);
  RUN(threads_stay_in_one_epoch);
  RUN(leaving_seals_what_was_closed_meanwhile);
  RUN(leaving_an_empty_heap_ends_the_epoch);
  RUN(leaving_ends_what_was_released_meanwhile);
  RUN(large_blocks_of_who_was_inside_end_with_the_rest);
  RUN(threads_leave_their_scopes_when_they_end);
  RUN(ending_threads_seal_what_was_closed_meanwhile);
  RUN(later_threads_go_on_in_the_same_heap);
  RUN(no_memory_for_a_heap);
  RUN(nobody_enters_after_the_threads_destructors);
  RUN(closing_races_with_entering);
  RUN(closing_races_with_visits);
  RUN(releasing_races_with_leaving);
  return test_status();
}
