#include "epoch/close.h"

#include "base/options.h"
#include "epochs.h"
#include "memory/purge.h"
#include "memory/units.h"
#include "os_fake.h"
#include "state/history.h"
#include "takes.h"
#include "threads.h"

enum { BYTES = 100, SOME = 10, MANY = 3000, EPOCHS = 40, LIVES = 100000, MIB = 1 << 20 };

static void *blocks[MANY];

static void check_survivors(tslab_epoch epoch, size_t objects, size_t bytes, size_t pages) {
  tslab_survivors left = epochs_close(epoch, objects);
  CHECK_EQ(left.bytes, bytes);
  CHECK_EQ(left.pages, pages);
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.state, TSLAB_CLOSED);
  CHECK_EQ(stats.live_objects, objects);
  CHECK_EQ(stats.live_bytes, bytes);
  CHECK_EQ(stats.held_bytes, pages * 4096);
}

static void check_over(tslab_epoch epoch) {
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

// Cells of 4 and 64 KiB; the second one empties before the close.
static void survivors_in_cells(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, SOME);
  void *larger[] = {epochs_alloc(epoch, 1000), epochs_alloc(epoch, 1000)};
  void *second[] = {epochs_alloc(epoch, 4000), epochs_alloc(epoch, 4000)};
  epochs_free(blocks[3], BYTES);
  epochs_free(larger[1], 1000);
  for (int i = 0; i < 2; i++) epochs_free(second[i], 4000);
  check_survivors(epoch, SOME, (SOME - 1) * takes(BYTES) + 1024, 1);
  blocks[3] = blocks[SOME - 1];
  epochs_free_many(blocks, BYTES, SOME - 1);
  epochs_free(larger[0], 1000);
  check_over(epoch);
}

static void survivors_in_many_cells(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = 16384, .threads = 4);
  epochs_alloc_many(blocks, epoch, 2048, 24);
  for (int i = 8; i < 16; i++) epochs_free(blocks[i], 2048);
  check_survivors(epoch, 16, 16 * 2048, 2 * 4);
  for (int i = 0; i < 24; i++) {
    if (i < 8 || i >= 16) epochs_free(blocks[i], 2048);
    CHECK_EQ(epochs_is_over(epoch), i == 23);
  }
  check_over(epoch);
}

static void survivors_in_slabs(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  epochs_alloc_many(blocks, epoch, 12000, 15);
  void *small[] = {epochs_alloc(epoch, 64), epochs_alloc(epoch, 64), epochs_alloc(epoch, 200)};
  epochs_free(small[1], 64);
  epochs_free(blocks[14], 12000);
  check_survivors(epoch, 16, 14 * 12288 + takes(64) + takes(200), 2 * 32 + 16 + 16);
  epochs_free_many(blocks, 12000, 14);
  CHECK_EQ(epochs_stats(epoch).held_bytes, 32 * 4096);
  epochs_free(small[0], 64);
  epochs_free(small[2], 200);
  check_over(epoch);
}

static void survivors_in_large_blocks(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, 100000, 3);
  void *larger = epochs_alloc(epoch, 3 * MIB);
  epochs_free(blocks[1], 100000);
  check_survivors(epoch, 3, 2 * 131072 + 3 * MIB, 2 * 32 + 3 * 256);
  epochs_free(blocks[0], 100000);
  epochs_free(blocks[2], 100000);
  epochs_free(larger, 3 * MIB);
  check_over(epoch);
}

static void survivors_that_are_aligned(void) {
  static const size_t alignments[] = {16, 64, 512, 4096, 65536, MIB};
  tslab_epoch epoch = epochs_open();
  size_t bytes = 0;
  for (int i = 0; i < 6; i++) {
    blocks[i] = tslab_epoch_aligned_alloc(epoch, alignments[i], 700);
    CHECK(blocks[i] != NULL && (uintptr_t)blocks[i] % alignments[i] == 0);
    bytes += takes_of(blocks[i]);
  }
  CHECK_EQ(epochs_close(epoch, 6).bytes, bytes);
  for (int i = 0; i < 6; i++) tslab_free(blocks[i]);
  check_over(epoch);
}

// Allocates first, so that it has a heap.
static void *free_some(void *count) {
  tslab_free(tslab_malloc(1));
  epochs_free_many(blocks, BYTES, *(unsigned *)count);
  return NULL;
}

static void freed_by_another_thread(size_t first_cell_bytes) {
  unsigned count = MANY / 2;
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  threads_run_one(free_some, &count);
  CHECK_EQ(epochs_close(epoch, MANY - count).bytes, (MANY - count) * takes(BYTES));
  memmove(blocks, blocks + count, (MANY - count) * sizeof *blocks);
  count = MANY - count;
  threads_run_one(free_some, &count);
  check_over(epoch);
}
static void survivors_are_not_what_others_freed(void) {
  freed_by_another_thread(0);
  freed_by_another_thread(TSLAB_NO_CELLS);
}

// The thread has no heap, and sealed cells have none either.
static void *free_survivors(void *unused) {
  for (int i = 0; i < SOME; i++) tslab_free(blocks[i]);
  return unused;
}

static void threads_without_a_heap_free_survivors(void) {
  static const size_t cells[] = {0, TSLAB_NO_CELLS};
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(blocks, epoch, BYTES, SOME);
    epochs_close(epoch, SOME);
    threads_run_one(free_survivors, NULL);
    check_over(epoch);
  }
}

static void nothing_survives(void) {
  tslab_epoch unused = epochs_open(), used = epochs_open();
  epochs_alloc_many(blocks, used, BYTES, MANY);
  epochs_free_many(blocks, BYTES, MANY);
  tslab_survivors left = epochs_close(unused, 0);
  CHECK_EQ(left.bytes + left.pages, 0);
  left = epochs_close(used, 0);
  CHECK_EQ(left.bytes + left.pages, 0);
  CHECK(epochs_is_over(unused));
  check_over(used);
}

static void check_close_refused(tslab_epoch epoch, int error) {
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, error);
  CHECK_EQ(left.objects + left.bytes + left.pages, 0);
}

static void epochs_end_once(void) {
  tslab_epoch epoch = epochs_open();
  void *survivor = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  check_close_refused(epoch, ECANCELED);
  epochs_free(survivor, BYTES);
  check_close_refused(epoch, ESTALE);
  CHECK_EQ(tslab_epoch_release(epoch), ESTALE);
  check_close_refused(TSLAB_DEFAULT, EPERM);
  CHECK_EQ(tslab_epoch_release(TSLAB_DEFAULT), EPERM);
  check_close_refused(TSLAB_NO_EPOCH, ESTALE);
  CHECK_EQ(tslab_epoch_release(TSLAB_NO_EPOCH), ESTALE);
}

// Ids of a slot's earlier and later lives end nobody else.
static void other_lives_are_not_ended(void) {
  tslab_epoch earlier = epochs_open();
  CHECK_EQ(tslab_epoch_release(earlier), 0);
  tslab_epoch later = epochs_open();
  CHECK_EQ(tsl_epoch_slot(later), tsl_epoch_slot(earlier));
  check_close_refused(earlier, ESTALE);
  CHECK_EQ(tslab_epoch_release(earlier), ESTALE);
  check_close_refused(later + ((tslab_epoch)1 << TSL_EPOCH_SLOT_BITS), ESTALE);
  CHECK_EQ(epochs_stats(later).state, TSLAB_OPEN);
}

static tslab_epoch contested;
static pthread_barrier_t meeting;
static uint32_t won;

static void *contest(void *unused) {
  pthread_barrier_wait(&meeting);
  int error = tslab_epoch_close(contested).error;
  CHECK(error == 0 || error == ECANCELED || error == ESTALE);
  if (error == 0) tsl_add_relaxed(&won, 1);
  return unused;
}

static void one_thread_ends_the_epoch(void) {
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, THREADS), 0);
  for (uint32_t i = 1; i <= 200; i++) {
    contested = epochs_open();
    void *survivor = i % 2 == 0 ? epochs_alloc(contested, BYTES) : NULL;
    threads_run(contest, NULL);
    CHECK_EQ(won, i);
    tslab_free(survivor);
    CHECK(epochs_is_over(contested));
  }
}

static void children_outlive_a_closed_parent(void) {
  tslab_epoch parent = epochs_open(), child = EPOCHS_OPEN(.parent = parent);
  epochs_close(parent, 0);
  CHECK_EQ(epochs_stats(parent).children, 1);
  void *block = epochs_alloc(child, BYTES);
  CHECK_EQ(epochs_stats(child).parent, parent);
  tslab_epoch_options late = {.size = sizeof late, .parent = parent};
  CHECK(tslab_epoch_open("late", &late) == TSLAB_NO_EPOCH && errno == ECANCELED);
  CHECK_EQ(epochs_stats(parent).children, 1);
  epochs_close(child, 1);
  CHECK(!epochs_is_over(parent));
  epochs_free(block, BYTES);
  CHECK(epochs_is_over(child));
  CHECK(epochs_is_over(parent));
  CHECK(tslab_epoch_open("late", &late) == TSLAB_NO_EPOCH && errno == ESTALE);
  epochs_check_all_free();
}

// Two epochs whose lives overlap again and again, their blocks freed in every phase.
static void interleaved_epochs(void) {
  static void *held[2][MANY];
  tslab_epoch epochs[2] = {epochs_open(), epochs_open()};
  for (int round = 0; round < EPOCHS; round++) {
    int here = round % 2, there = 1 - here;
    size_t objects = epochs_stats(epochs[there]).live_objects;
    for (int i = 0; i < 300; i++) {
      held[here][i] = epochs_alloc(epochs[here], BYTES + (size_t)i);
      if (i % 3 == 0) epochs_free(epochs_alloc(epochs[there], BYTES), BYTES);
    }
    epochs_close(epochs[there], objects);
    for (size_t i = 0; i < objects; i++) {
      CHECK(!epochs_is_over(epochs[there]));
      epochs_free(held[there][i], BYTES + i);
    }
    CHECK(epochs_is_over(epochs[there]));
    epochs[there] = epochs_open();
    CHECK_EQ(epochs_stats(epochs[here]).live_objects, 300);
  }
  for (int i = 0; i < 2; i++) CHECK_EQ(tslab_epoch_release(epochs[i]), 0);
  epochs_check_all_free();
}

// All allocated, then all closed, then all freed.
static void phases(bool backwards, size_t first_cell_bytes) {
  static tslab_epoch epochs[EPOCHS];
  static void *held[EPOCHS][50];
  for (int e = 0; e < EPOCHS; e++) epochs[e] = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  for (int i = 0; i < 50; i++) {
    for (int e = 0; e < EPOCHS; e++) held[e][i] = epochs_alloc(epochs[e], (size_t)i * 40);
  }
  for (int e = 0; e < EPOCHS; e++) epochs_close(epochs[backwards ? EPOCHS - 1 - e : e], 50);
  for (int i = 0; i < 50; i++) {
    for (int e = 0; e < EPOCHS; e++) CHECK_EQ(epochs_stats(epochs[e]).live_objects, 50 - i);
    for (int e = 0; e < EPOCHS; e++) epochs_free(held[e][i], (size_t)i * 40);
  }
  for (int e = 0; e < EPOCHS; e++) CHECK(epochs_is_over(epochs[e]));
  epochs_check_all_free();
}
static void all_closed_then_all_freed(void) {
  phases(false, 0);
  phases(true, 0);
  phases(false, TSLAB_NO_CELLS);
  phases(true, TSLAB_NO_CELLS);
}

static void one_life(int i) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  if (i % 3 == 0) epochs_free(block, BYTES);
  if (i % 3 != 2) epochs_close(epoch, i % 3 != 0);
  if (i % 3 == 1) epochs_free(block, BYTES);
  if (i % 3 == 2) CHECK_EQ(tslab_epoch_release(epoch), 0);
}

static void many_lives_take_no_more_than_a_few(void) {
  for (int i = 0; i < 10; i++) one_life(i);
  uint32_t heaps = tsl_region.last_heap, slots = tsl_region.last_epoch;
  size_t committed = os_fake.committed_bytes;
  for (int i = 0; i < LIVES; i++) one_life(i);
  CHECK_EQ(tsl_region.last_heap, heaps);
  CHECK_EQ(tsl_region.last_epoch, slots);
  CHECK_EQ(os_fake.committed_bytes, committed);
  epochs_check_all_free();
}

// Many at a time: slots and heaps are those of the busiest moment, and of homes without a thread
// that other threads are looking at as one wants a home.
static void *live_and_end(void *unused) {
  static _Thread_local tslab_epoch epochs[EPOCHS];
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < EPOCHS; i++) epochs[i] = epochs_open();
    for (int i = 0; i < EPOCHS; i++) epochs_free(epochs_alloc(epochs[i], BYTES), BYTES);
    for (int i = 0; i < EPOCHS; i++) epochs_close(epochs[i], 0);
  }
  return unused;
}

static void threads_reuse_slots(void) {
  for (int i = 0; i < 5; i++) threads_run(live_and_end, NULL);
  uint32_t homes = 2 * THREADS - 1;
  CHECK_LE(tsl_region.last_epoch, homes * (EPOCHS + TSL_HOME_SLOTS));
  CHECK_LE(tsl_region.last_heap, homes * (EPOCHS + 1));
  CHECK(epochs_is_over(((tslab_epoch)1 << TSL_EPOCH_SLOT_BITS) + 1));
  epochs_check_all_free();
}

static void run_survivors(void) {
  RUN_UNLESS_SECURE(survivors_in_cells);
  RUN_UNLESS_SECURE(survivors_in_many_cells);
  RUN(survivors_in_slabs);
  RUN(survivors_in_large_blocks);
  RUN(survivors_that_are_aligned);
  RUN(survivors_are_not_what_others_freed);
  RUN(threads_without_a_heap_free_survivors);
  RUN(nothing_survives);
}

static unsigned helper_calls;
static size_t helper_more_bytes;
static void count_call(size_t more_bytes) {
  helper_calls++;
  helper_more_bytes += more_bytes;
}

static void count_calls(void) {
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_purge_helper_missing = count_call;
  helper_calls = 0;
  helper_more_bytes = 0;
}

// A thread may end an epoch, and then sleep.
static void an_end_calls_a_helper(void) {
  tslab_epoch little = epochs_open(), more = epochs_open();
  tslab_epoch much = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_epoch empty = epochs_open();
  epochs_alloc(little, BYTES);
  for (unsigned i = 0; i < 9; i++) epochs_alloc(more, 12000);
  for (unsigned i = 0; i < 2 * MIB / 12000; i++) epochs_alloc(much, 12000);
  count_calls();
  epochs_close(empty, 0);
  CHECK_EQ(helper_calls, 0);
  CHECK_EQ(tslab_epoch_release(little), 0);
  CHECK_EQ(helper_calls, TSL_SECURE);  // what has no cells stays with no thread
  CHECK_EQ(tslab_epoch_release(more), 0);
  CHECK_NE(helper_calls, 0);
  CHECK_EQ(helper_more_bytes, 0);
  CHECK_EQ(tslab_epoch_release(much), 0);
  CHECK_GE(helper_more_bytes, 2 * MIB);
}

// One that no thread entered tells of its end what its children hold.
static void what_children_hold_is_told(void) {
  tslab_epoch parent = epochs_open(), child = EPOCHS_OPEN(.parent = parent);
  uint32_t label = tsl_epoch_at(tsl_epoch_slot(parent))->label;
  epochs_alloc(child, BYTES);
  epochs_close(parent, 0);
  CHECK_EQ(tsl_history_of(label).ended, 1);
  CHECK_GE(tsl_history_of(label).held_bytes, BYTES);
}

// The parent's end calls for all.
static void ends_of_children_call_none(void) {
  tslab_epoch parent = epochs_open();
  for (unsigned i = 0; i < EPOCHS; i++) epochs_alloc(EPOCHS_OPEN(.parent = parent), BYTES);
  count_calls();
  CHECK_EQ(tslab_epoch_release(parent), 0);
  CHECK_NE(helper_calls, 0);
  CHECK_LE(helper_calls, EPOCHS / 4);
}

int main(void) {
  run_survivors();
  RUN(epochs_end_once);
  RUN(other_lives_are_not_ended);
  RUN(one_thread_ends_the_epoch);
  RUN(children_outlive_a_closed_parent);
  RUN(interleaved_epochs);
  RUN(all_closed_then_all_freed);
  RUN(many_lives_take_no_more_than_a_few);
  RUN(threads_reuse_slots);
  RUN(an_end_calls_a_helper);
  RUN(what_children_hold_is_told);
  RUN(ends_of_children_call_none);
  return test_status();
}
