#include "epoch/reset.h"

#include <errno.h>

#include "epochs.h"
#include "os_fake.h"
#include "state/history.h"
#include "takes.h"
#include "threads.h"
#include "told.h"
#include "upkeep/reports.h"

enum { BYTES = 100, SOME = 10, MANY = 3000, MIB = 1 << 20, FRAMES = 50 };

static void *blocks[MANY], *before[MANY];

static void reset(tslab_epoch epoch) { CHECK_EQ(tslab_epoch_reset(epoch), 0); }

static void check_empty(tslab_epoch epoch) {
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.state, TSLAB_OPEN);
  CHECK_EQ(stats.closed_ms, 0);
  CHECK_EQ(stats.live_objects, 0);
  CHECK_EQ(stats.live_bytes, 0);
  state_check();
}

static void close_empty(tslab_epoch epoch) {
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void fill_everywhere(tslab_epoch epoch) {
  static const size_t sizes[] = {0, 24, 1000, 5000, 9000, 30000, 70000, MIB};
  for (unsigned i = 0; i < 80; i++) {
    void *block = epochs_alloc(epoch, sizes[i % 8]);
    if (i % 3 == 0) epochs_free(block, sizes[i % 8]);
  }
}

static void all_objects_end(void) {
  static const size_t cells[] = {0, 65536, TSLAB_NO_CELLS};
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    reset(epoch);
    check_empty(epoch);
    for (int frame = 0; frame < 4; frame++) {
      fill_everywhere(epoch);
      reset(epoch);
      check_empty(epoch);
    }
    close_empty(epoch);
  }
}

// Objects after a reset are like any others: they are freed one by one, and survive a close.
static void objects_live_after_a_reset(void) {
  static const size_t cells[] = {0, TSLAB_NO_CELLS};
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(blocks, epoch, BYTES, MANY);
    reset(epoch);
    epochs_alloc_many(blocks, epoch, BYTES, MANY);
    epochs_free_many(blocks, BYTES, MANY / 2);
    CHECK_EQ(epochs_stats(epoch).live_objects, MANY / 2);
    epochs_close(epoch, MANY / 2);
    epochs_free_many(blocks + MANY / 2, BYTES, MANY / 2);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

static bool was_before(const void *block) {
  for (unsigned i = 0; i < MANY; i++)
    if (before[i] == block) return true;
  return false;
}

// The second frame lies where the first one lay.
static void memory_stays_warm(void) {
  static const size_t cells[] = {65536, TSLAB_NO_CELLS};
  static const unsigned counts[] = {65536 / 128, MANY};
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(before, epoch, 128 - TSL_CANARY_BYTES, counts[i]);
    size_t held = epochs_stats(epoch).held_bytes;
    reset(epoch);
    if (!TSL_SECURE) CHECK_EQ(epochs_stats(epoch).held_bytes, held);
    uint64_t commits = os_fake.calls[OS_FAKE_COMMIT], purges = os_fake.calls[OS_FAKE_PURGE];
    epochs_alloc_many(blocks, epoch, 128 - TSL_CANARY_BYTES, counts[i]);
    CHECK_EQ(os_fake.calls[OS_FAKE_COMMIT], commits);
    CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], purges);
    CHECK_EQ(epochs_stats(epoch).held_bytes, held);
    for (unsigned k = 0; k < counts[i] && !TSL_SECURE; k++) CHECK(was_before(blocks[k]));
    reset(epoch);
    close_empty(epoch);
  }
}

// Slabs that a frame did not use go back at its end.
static void what_a_frame_did_not_need_goes_back(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  reset(epoch);
  epochs_alloc(epoch, BYTES);
  reset(epoch);
  CHECK_LE(epochs_stats(epoch).held_bytes, TSL_UNIT_BYTES);
  reset(epoch);
  CHECK_EQ(epochs_stats(epoch).held_bytes, 0);
  close_empty(epoch);
}

// What one frame held in blocks of one size the next may hold in those of another.
static void a_limit_leaves_nothing(void) {
  static const size_t sizes[] = {64, 1000, 20000, 200000};
  for (int own = 0; own < 2; own++) {
    tslab_epoch parent = EPOCHS_OPEN(.hard_limit_bytes = own ? 0 : MIB);
    tslab_epoch epoch =
        EPOCHS_OPEN(.parent = parent, .hard_limit_bytes = own ? MIB : 0, .first_cell_bytes = 65536);
    for (int frame = 0; frame < 8; frame++) {
      size_t bytes = sizes[frame % 4], most = 0;
      while (tslab_epoch_malloc(epoch, bytes) != NULL) most += takes(bytes);
      CHECK_EQ(errno, ENOMEM);
      CHECK_GE(most, MIB / 2);
      reset(epoch);
      CHECK_EQ(epochs_stats(epoch).held_bytes, 0);
    }
    epochs_close(epoch, 0);
    close_empty(parent);
  }
}

static void the_thread_may_be_inside(void) {
  tslab_epoch epoch = epochs_open(), other = epochs_open();
  tslab_scope outer, inner;
  epochs_enter(&outer, epoch);
  for (int frame = 0; frame < FRAMES; frame++) {
    for (int i = 0; i < SOME; i++) blocks[i] = tslab_malloc(BYTES);
    reset(epoch);
    CHECK_EQ(tslab_epoch_current(), epoch);
    blocks[0] = tslab_malloc(BYTES);
    CHECK_EQ(tslab_epoch_of(blocks[0]), epoch);
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    epochs_enter(&inner, other);
    reset(epoch);
    epochs_leave(&inner);
    check_empty(epoch);
  }
  epochs_leave(&outer);
  epochs_close(other, 0);
  close_empty(epoch);
}

static tslab_epoch common;
static pthread_barrier_t meeting;

static void *stay_inside(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, common);
  blocks[1] = tslab_malloc(BYTES);
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);  // the reset was refused
  tslab_free(blocks[1]);
  epochs_leave(&scope);
  return unused;
}

static void count_run(void *count) { ++*(unsigned *)count; }

static void nothing_changes_while_others_are_inside(void) {
  pthread_t thread;
  unsigned ran = 0;
  common = epochs_open();
  blocks[0] = epochs_alloc(common, BYTES);
  CHECK_EQ(tslab_epoch_defer(common, count_run, &ran), 0);
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, 2), 0);
  CHECK_EQ(pthread_create(&thread, NULL, stay_inside, NULL), 0);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(tslab_epoch_reset(common), EBUSY);
  CHECK_EQ(ran, 0);
  CHECK_EQ(epochs_stats(common).live_objects, 2);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  epochs_free(blocks[0], BYTES);
  blocks[0] = epochs_alloc(common, BYTES);
  reset(common);
  CHECK_EQ(ran, 1);
  check_empty(common);
  close_empty(common);
}

// Allocates while it is its turn; the main thread resets in between.
static void *take_turns(void *unused) {
  for (int frame = 0; frame < FRAMES; frame++) {
    pthread_barrier_wait(&meeting);
    fill_everywhere(common);
    epochs_free(epochs_alloc(common, BYTES), BYTES);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
  }
  return unused;
}

static void objects_of_all_threads_end(size_t first_cell_bytes) {
  pthread_t threads[THREADS];
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  common = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS + 1), 0);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, take_turns, NULL);
  for (int frame = 0; frame < FRAMES; frame++) {
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    reset(common);
    check_empty(common);
    CHECK_EQ(epochs_stats(common).held_bytes, 0);
    pthread_barrier_wait(&meeting);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  close_empty(common);
}
static void objects_of_all_threads_end_in_cells(void) { objects_of_all_threads_end(0); }
static void objects_of_all_threads_end_in_slabs(void) {
  objects_of_all_threads_end(TSLAB_NO_CELLS);
}

static void *free_it(void *block) {
  epochs_free(block, BYTES);
  return NULL;
}

// What others freed before the reset is not counted after it.
static void frees_by_others_are_forgotten(void) {
  static const size_t cells[] = {0, TSLAB_NO_CELLS};
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    for (int frame = 0; frame < SOME; frame++) {
      epochs_alloc_many(blocks, epoch, BYTES, SOME);
      threads_run_one(free_it, blocks[frame]);
      reset(epoch);
      check_empty(epoch);
    }
    epochs_alloc_many(blocks, epoch, BYTES, SOME);
    epochs_close(epoch, SOME);
    threads_run_one(free_it, blocks[0]);
    epochs_free_many(blocks + 1, BYTES, SOME - 1);
    CHECK(epochs_is_over(epoch));
    epochs_check_all_free();
  }
}

static unsigned order;
static int late_error;

static void run_first(void *argument) {
  CHECK_EQ(order++, 0);
  late_error = tslab_epoch_defer(*(tslab_epoch *)argument, count_run, NULL);
  CHECK(tslab_epoch_malloc(*(tslab_epoch *)argument, BYTES) == NULL);
  CHECK_EQ(errno, EBUSY);
  CHECK_EQ(tslab_epoch_close(*(tslab_epoch *)argument).error, EBUSY);
  CHECK_EQ(tslab_epoch_release(*(tslab_epoch *)argument), EBUSY);
  CHECK_EQ(tslab_epoch_reset(*(tslab_epoch *)argument), EBUSY);
  CHECK_EQ(epochs_stats(*(tslab_epoch *)argument).state, TSLAB_OPEN);
}
static void run_second(void *argument) {
  CHECK_EQ(order++, 1);
  epochs_free(argument, BYTES);
}

static void deferred_calls_run_once(void) {
  tslab_epoch epoch = epochs_open();
  for (int frame = 0; frame < 3; frame++) {
    void *object = epochs_alloc(epoch, BYTES);
    order = 0;
    CHECK_EQ(tslab_epoch_defer(epoch, run_second, object), 0);
    CHECK_EQ(tslab_epoch_defer(epoch, run_first, &epoch), 0);
    tslab_deferred call = tslab_deferred_add(epoch, run_first, &epoch);
    CHECK(tslab_deferred_cancel(call));
    reset(epoch);
    CHECK_EQ(order, 2);
    CHECK_EQ(late_error, EBUSY);
    CHECK(!tslab_deferred_cancel(call));
  }
  reset(epoch);
  CHECK_EQ(order, 2);
  close_empty(epoch);
}

static void children_end(void) {
  tslab_epoch epoch = epochs_open();
  unsigned ran = 0;
  for (int frame = 0; frame < 3; frame++) {
    tslab_epoch child = EPOCHS_OPEN(.parent = epoch), closed = EPOCHS_OPEN(.parent = child);
    epochs_alloc(child, BYTES);
    epochs_alloc(closed, BYTES);
    CHECK_EQ(tslab_epoch_defer(child, count_run, &ran), 0);
    epochs_close(closed, 1);
    reset(epoch);
    CHECK(epochs_is_over(child) && epochs_is_over(closed));
    CHECK_EQ(epochs_stats(epoch).children, 0);
  }
  CHECK_EQ(ran, 3);
  close_empty(epoch);
}

static void reset_is_refused(void) {
  tslab_epoch epoch = epochs_open();
  void *survivor = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  CHECK_EQ(tslab_epoch_reset(epoch), ECANCELED);
  epochs_free(survivor, BYTES);
  CHECK_EQ(tslab_epoch_reset(epoch), ESTALE);
  CHECK_EQ(tslab_epoch_reset(TSLAB_DEFAULT), EPERM);
  CHECK_EQ(tslab_epoch_reset(TSLAB_NO_EPOCH), ESTALE);
}

// As many as a label needs before the next ones share.
static void close_enough(void) {
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) {
    tslab_epoch epoch = epochs_open();
    epochs_free(epochs_alloc(epoch, BYTES), BYTES);
    epochs_close(epoch, 0);
  }
}

// Objects of the others lie there, too; the label shares no more.
static void epochs_that_share_are_refused(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  tslab_epoch place = epochs_stats(epoch).place;
  unsigned ran = 0;
  void *block = epochs_alloc(epoch, BYTES);
  close_enough();
  CHECK(tsl_history_shares(tsl_epoch_at(tsl_epoch_slot(epoch))->label));
  CHECK_EQ(tslab_epoch_defer(epoch, count_run, &ran), 0);
  CHECK_EQ(tslab_epoch_reset(place), EPERM);
  CHECK_EQ(tslab_epoch_reset(epoch), ENOTSUP);
  CHECK_EQ(ran, 0);
  CHECK(!tsl_history_shares(tsl_epoch_at(tsl_epoch_slot(epoch))->label));
  CHECK_EQ(tslab_epoch_of(block), place);
  epochs_free(block, BYTES);
  epochs_free(epochs_alloc(epoch, BYTES), BYTES);
  epochs_close(epoch, 0);
  CHECK_EQ(ran, 1);
}

// A label of which one epoch was reset has memory of its own.
static void labels_that_reset_do_not_share(void) {
  tslab_epoch epoch = epochs_open();
  uint32_t label = tsl_epoch_at(tsl_epoch_slot(epoch))->label;
  reset(epoch);
  close_enough();
  CHECK(!tsl_history_shares(label));
  close_empty(epoch);
}

// Their memory still holds their stamps.
static void handles_end(void) {
  static const size_t cells[] = {0, TSLAB_NO_CELLS};
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    for (int frame = 0; frame < FRAMES; frame++) {
      reset(epoch);
      tslab_handle handle = tslab_handle_alloc(epoch, BYTES);
      CHECK(tslab_handle_get(handle) == handle.block);
      reset(epoch);
      CHECK(tslab_handle_get(handle) == NULL);
      CHECK(!tslab_handle_free(handle));
      void *again = tslab_epoch_malloc(epoch, BYTES + 16);
      if (!TSL_SECURE) CHECK(again == (char *)handle.block - 16);
      CHECK(tslab_handle_get(handle) == NULL);
      CHECK(!tslab_handle_free(handle));
      tslab_free(again);
      tslab_handle next = tslab_handle_alloc(epoch, BYTES);
      CHECK(tslab_handle_get(handle) == NULL);
      CHECK(tslab_handle_get(next) == next.block);
      CHECK(tslab_handle_free(next));
    }
    close_empty(epoch);
  }
}

// The statistics file says the same as the epoch, and forgets no allocation.
static void statistics_follow(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  os_fake.now_ms = 1000;
  tslab_free(tslab_malloc(1));
  tsl_report_start();
  uint64_t allocations = told_allocations();
  for (int frame = 0; frame < SOME; frame++) {
    epochs_enter(&scope, epoch);
    for (int i = 0; i < MANY; i++) blocks[i] = tslab_malloc(BYTES);
    reset(epoch);
    struct told told = told_of_epoch(tsl_epoch_slot(epoch));
    CHECK_EQ(told.objects, 0);
    CHECK_EQ(told.bytes, 0);
    CHECK_GE(told_allocations(), allocations + MANY);
    allocations = told_allocations();
    CHECK(tslab_malloc(BYTES) != NULL);
    epochs_leave(&scope);
    CHECK_EQ(told_of_epoch(tsl_epoch_slot(epoch)).objects, 1);
  }
  reset(epoch);
  close_empty(epoch);
}

int main(void) {
  RUN(all_objects_end);
  RUN(objects_live_after_a_reset);
  RUN(memory_stays_warm);
  RUN(what_a_frame_did_not_need_goes_back);
  RUN(a_limit_leaves_nothing);
  RUN(the_thread_may_be_inside);
  RUN(nothing_changes_while_others_are_inside);
  RUN(objects_of_all_threads_end_in_cells);
  RUN(objects_of_all_threads_end_in_slabs);
  RUN(frees_by_others_are_forgotten);
  RUN(deferred_calls_run_once);
  RUN(children_end);
  RUN(reset_is_refused);
  RUN(epochs_that_share_are_refused);
  RUN(labels_that_reset_do_not_share);
  RUN(handles_end);
  RUN(statistics_follow);
  return test_status();
}
