// What the ends of epochs leave alive; keep_fake_test.c is about what may be kept.
#include "epoch/spare.h"

#include <errno.h>

#include "base/options.h"
#include "capture.h"
#include "epoch/poison.h"
#include "epochs.h"
#include "heap/warm.h"
#include "os_fake.h"
#include "threads.h"
#include "upkeep/remains.h"

enum { BYTES = 100, LARGE = 200000, FEW = 24, MANY = 3000, SIZES = 6 };

static void *blocks[MANY];
static const size_t cells[] = {0, 65536, TSLAB_NO_CELLS};
static const size_t sizes[SIZES] = {16, BYTES, 1000, 5000, 20000, LARGE};

static size_t size_at(unsigned i) { return sizes[i % SIZES]; }

static void keep(const void *block) { CHECK_EQ(tslab_epoch_keep(block), 0); }
static void release(tslab_epoch epoch) { CHECK_EQ(tslab_epoch_release(epoch), 0); }
static void reset(tslab_epoch epoch) { CHECK_EQ(tslab_epoch_reset(epoch), 0); }

static void start(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  os_fake.now_ms = 1000;
}

// Of every size; each `nth` is kept.
static void fill(tslab_epoch epoch, unsigned count, unsigned nth) {
  for (unsigned i = 0; i < count; i++) blocks[i] = epochs_alloc(epoch, size_at(i));
  for (unsigned i = 0; i < count; i += nth) keep(blocks[i]);
}

static void free_kept(unsigned count, unsigned nth) {
  for (unsigned i = 0; i < count; i += nth) epochs_free(blocks[i], size_at(i));
}

static void check_live(tslab_epoch epoch, size_t objects) {
  CHECK_EQ(epochs_stats(epoch).live_objects, objects);
  state_check();
}

static void check_over(tslab_epoch epoch) {
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void a_release_spares(unsigned count, unsigned nth) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    fill(epoch, count, nth);
    release(epoch);
    check_live(epoch, (count + nth - 1) / nth);
    CHECK_EQ(epochs_stats(epoch).state, TSLAB_RELEASED);
    CHECK_EQ(tslab_epoch_release(epoch), ESTALE);
    CHECK_EQ(tslab_epoch_close(epoch).error, ECANCELED);
    free_kept(count, nth);
    check_over(epoch);
  }
}
static void all_are_spared(void) { a_release_spares(FEW, 1); }
static void some_are_spared(void) { a_release_spares(200, 7); }
static void one_is_spared(void) { a_release_spares(200, 200); }

// Pieces in which nothing is kept go back at the release.
static void the_rest_goes_back(void) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    epochs_alloc_many(blocks, epoch, BYTES, MANY);
    keep(blocks[MANY / 2]);
    release(epoch);
    CHECK_LE(epochs_stats(epoch).held_bytes, TSL_UNIT_BYTES);
    epochs_free(blocks[MANY / 2], BYTES);
    check_over(epoch);
  }
}

static void *late;
static void free_late(void) { tslab_free(late); }

// A neighbour of what was spared has ended: its free is one too many.
static void neighbours_have_ended(void) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    void *kept = epochs_alloc(epoch, BYTES);
    late = epochs_alloc(epoch, BYTES);
    keep(kept);
    release(epoch);
    CHECK_NE(capture_child(free_late), 0);
    CHECK(strstr(capture_text, "is free already") != NULL);
    epochs_free(kept, BYTES);
    check_over(epoch);
  }
}

static void a_closed_epoch_is_released(void) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    fill(epoch, 120, 5);
    epochs_close(epoch, 120);
    keep(blocks[1]);
    release(epoch);
    check_live(epoch, 120 / 5 + 1);
    CHECK_EQ(tslab_epoch_keep(blocks[2]), EFAULT);
    epochs_free(blocks[1], size_at(1));
    free_kept(120, 5);
    check_over(epoch);
  }
}

static void a_reset_spares(void) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    fill(epoch, 120, 5);
    for (int round = 0; round < 4; round++) {
      reset(epoch);
      check_live(epoch, 120 / 5);
      for (unsigned k = 0; k < 60; k++) epochs_alloc(epoch, size_at(k));
    }
    tslab_survivors left = tslab_epoch_close(epoch);
    CHECK_EQ(left.objects, 120 / 5 + 60);
    CHECK_EQ(left.bytes, epochs_stats(epoch).live_bytes);
    release(epoch);
    check_live(epoch, 120 / 5);
    free_kept(120, 5);
    check_over(epoch);
  }
}

static int count_block(void *block, size_t bytes, void *count) {
  (void)block, (void)bytes;
  ++*(unsigned *)count;
  return 0;
}

static void walks_find_what_was_spared(void) {
  start();
  tslab_epoch epoch = epochs_open();
  fill(epoch, FEW, 2);
  for (int round = 0; round < 2; round++) {
    unsigned count = 0;
    if (round == 0) reset(epoch);
    if (round == 1) release(epoch);
    CHECK_EQ(tslab_epoch_blocks_each(epoch, count_block, &count), 0);
    CHECK_EQ(count, FEW / 2);
  }
  free_kept(FEW, 2);
  check_over(epoch);
}

// The parent holds what its child's end spared, and its own end ends that.
static void the_parent_ends_it(void) {
  start();
  for (int i = 0; i < 3; i++) {
    for (int by_reset = 0; by_reset < 2; by_reset++) {
      tslab_epoch parent = epochs_open();
      tslab_epoch epoch = EPOCHS_OPEN(.parent = parent, .first_cell_bytes = cells[i]);
      fill(epoch, FEW, 1);
      release(epoch);
      CHECK_EQ(epochs_stats(parent).held_bytes, epochs_stats(epoch).held_bytes);
      CHECK(epochs_stats(parent).held_bytes != 0);
      CHECK_EQ(epochs_stats(parent).children, 1);
      if (by_reset) reset(parent);
      if (!by_reset) release(parent);
      CHECK(epochs_is_over(epoch));
      if (by_reset) release(parent);
      check_over(parent);
    }
  }
}

static void kept_again_it_outlives_the_parent(void) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch top = epochs_open(), parent = EPOCHS_OPEN(.parent = top);
    tslab_epoch epoch = EPOCHS_OPEN(.parent = parent, .first_cell_bytes = cells[i]);
    fill(epoch, FEW, 1);
    release(epoch);
    for (unsigned k = 0; k < FEW; k += 2) keep(blocks[k]);
    reset(parent);
    check_live(epoch, FEW / 2);
    reset(parent);
    release(parent);
    check_live(epoch, FEW / 2);
    CHECK_EQ(epochs_stats(parent).state, TSLAB_RELEASED);
    for (unsigned k = 0; k < FEW; k += 4) keep(blocks[k]);
    release(top);
    check_live(epoch, FEW / 4);
    for (unsigned k = 0; k < FEW; k += 4) epochs_free(blocks[k], size_at(k));
    CHECK(epochs_is_over(epoch) && epochs_is_over(parent));
    check_over(top);
  }
}

// The release of the parent ends the child and, as the parent's, what the child would have spared.
static void released_with_its_parent_it_spares_nothing(void) {
  start();
  for (int i = 0; i < 3; i++) {
    tslab_epoch parent = epochs_open();
    tslab_epoch epoch = EPOCHS_OPEN(.parent = parent, .first_cell_bytes = cells[i]);
    fill(epoch, FEW, 1);
    release(parent);
    CHECK(epochs_is_over(epoch));
    check_over(parent);
  }
}

static void *common_block;
static void keep_deferred(void *unused) {
  (void)unused;
  keep(common_block);
}

static void deferred_calls_keep(void) {
  start();
  for (int by_reset = 0; by_reset < 2; by_reset++) {
    tslab_epoch epoch = epochs_open();
    common_block = epochs_alloc(epoch, BYTES);
    CHECK_EQ(tslab_epoch_defer(epoch, keep_deferred, NULL), 0);
    if (by_reset) reset(epoch);
    release(epoch);
    check_live(epoch, 1);
    epochs_free(common_block, BYTES);
    check_over(epoch);
  }
}

static unsigned overs;
static void count_over(tslab_epoch epoch, void *context) {
  (void)epoch, (void)context;
  overs++;
}

static void the_epoch_is_over_with_the_last_one(void) {
  start();
  tslab_epoch epoch = epochs_open();
  void *first = epochs_alloc(epoch, BYTES), *last = epochs_alloc(epoch, LARGE);
  CHECK_EQ(tslab_epoch_on_over(epoch, count_over, NULL), 0);
  keep(first);
  keep(last);
  release(epoch);
  epochs_free(first, BYTES);
  CHECK_EQ(overs, 0);
  epochs_free(last, LARGE);
  CHECK_EQ(overs, 1);
}

static tslab_epoch common;
static pthread_barrier_t meeting;
static void *late;

static void *keep_inside(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, common);
  for (unsigned i = 0; i < FEW; i++) blocks[i] = epochs_alloc(common, size_at(i));
  for (unsigned i = 0; i < FEW; i += 2) keep(blocks[i]);
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);  // it was released
  void *large = tslab_malloc(LARGE);
  CHECK_EQ(tslab_epoch_keep(large), ECANCELED);
  tslab_free(large);
  late = tslab_malloc(BYTES);
  keep(late);
  epochs_leave(&scope);
  return unused;
}

static void a_thread_that_is_inside_spares_as_it_leaves(void) {
  start();
  for (int i = 0; i < 3; i++) {
    pthread_t thread;
    common = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    CHECK_EQ(pthread_barrier_init(&meeting, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, keep_inside, NULL), 0);
    pthread_barrier_wait(&meeting);
    release(common);
    pthread_barrier_wait(&meeting);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_live(common, FEW / 2 + 1);
    tslab_free(late);
    free_kept(FEW, 2);
    check_over(common);
  }
}

// A part whose newest cell holds nothing that is kept stays warm; one whose cell does, does not.
static void the_part_stays_warm(void) {
  start();
  for (int is_newest = 0; is_newest < 2 && !TSL_SECURE; is_newest++) {
    tslab_epoch epoch = epochs_open();
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    for (unsigned i = 0; i < 600; i++) blocks[i] = tslab_malloc(BYTES);
    keep(blocks[is_newest ? 599 : 0]);
    epochs_leave(&scope);
    uint32_t before = tsl_heap_current->home->own->warm_count;
    release(epoch);
    CHECK_EQ(tsl_heap_current->home->own->warm_count, before + !is_newest);
    CHECK(tsl_warm_valid(tsl_heap_current->home));
    check_live(epoch, 1);
    tslab_free(blocks[is_newest ? 599 : 0]);
    tslab_epoch next = epochs_open();
    epochs_alloc_many(blocks, next, BYTES, FEW);
    release(next);
    CHECK(epochs_is_over(epoch) && epochs_is_over(next));
  }
  epochs_check_all_free();
}

static void others_are_released(unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = 65536);
    epochs_alloc(epoch, BYTES);
    release(epoch);
  }
}

static void read_late(void) { (void)*(volatile char *)late; }

// What is kept is never poisoned, nor what it shares a cell or slab with; what lies elsewhere is.
static void poison_passes_it_over(void) {
  for (int i = 0; i < 3; i++) {
    for (int is_closed = 0; is_closed < 2; is_closed++) {
      start();
      tsl_options.release = TSL_RELEASE_POISON;
      tsl_poison_init();
      tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
      void *kept[2] = {epochs_alloc(epoch, BYTES), epochs_alloc(epoch, LARGE)};
      epochs_alloc_many(blocks, epoch, BYTES, MANY);
      keep(kept[0]);
      keep(kept[1]);
      if (is_closed) epochs_close(epoch, MANY + 2);
      release(epoch);
      late = blocks[MANY - 1];
      CHECK_NE(capture_child(read_late), 0);
      CHECK_NE(capture_child(free_late), 0);
      CHECK(strstr(capture_text, "released") != NULL);
      CHECK(pattern_is(kept[0], BYTES, BYTES, BYTES));
      CHECK(pattern_is(kept[1], LARGE, LARGE, LARGE));
      if (is_closed) others_are_released(TSL_POISON_EPOCHS);
      epochs_free(kept[0], BYTES);
      epochs_free(kept[1], LARGE);
      if (!is_closed) others_are_released(TSL_POISON_EPOCHS);
      CHECK(epochs_is_over(epoch));
    }
  }
}

static void poison_lets_the_parent_end_it(void) {
  start();
  tsl_options.release = TSL_RELEASE_POISON;
  tsl_poison_init();
  tslab_epoch parent = epochs_open(), epoch = EPOCHS_OPEN(.parent = parent);
  fill(epoch, FEW, 2);
  release(epoch);
  release(parent);
  others_are_released(TSL_POISON_EPOCHS + 2);
  CHECK(epochs_is_over(epoch) && epochs_is_over(parent));
}

// Dead pages beside what was spared go back as those of closed epochs do.
static void dead_pages_go_back(void) {
  bool has_dead_pages = os_fake_page_bytes() < 65536;
  start();
  for (int by_reset = 0; by_reset < 2; by_reset++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = 65536);
    epochs_alloc_many(blocks, epoch, BYTES, 500);
    keep(blocks[0]);
    if (by_reset) reset(epoch);
    if (!by_reset) release(epoch);
    uint64_t purges = os_fake.calls[OS_FAKE_PURGE];
    for (unsigned ms = 0; ms < 20000; ms++) {
      os_fake.now_ms++;
      tsl_remains_step(1);
    }
    CHECK_EQ(os_fake.calls[OS_FAKE_PURGE] > purges, has_dead_pages);
    CHECK(pattern_is(blocks[0], BYTES, BYTES, BYTES));
    epochs_free(blocks[0], BYTES);
    if (by_reset) release(epoch);
    CHECK(epochs_is_over(epoch));
  }
}

static void *free_half(void *unused) {
  for (unsigned i = 0; i < MANY; i += 2) epochs_free(blocks[i], BYTES);
  return unused;
}

// The frees and the release meet anywhere.
static void others_free_meanwhile(void) {
  for (int i = 0; i < 3; i++) {
    for (int round = 0; round < 20; round++) {
      pthread_t thread;
      start();
      tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
      epochs_alloc_many(blocks, epoch, BYTES, MANY);
      for (unsigned k = 0; k < MANY; k++) keep(blocks[k]);
      CHECK_EQ(pthread_create(&thread, NULL, free_half, NULL), 0);
      if (round % 2 == 0) CHECK_EQ(tslab_epoch_close(epoch).error, 0);
      release(epoch);
      CHECK_EQ(pthread_join(thread, NULL), 0);
      check_live(epoch, MANY / 2);
      for (unsigned k = 1; k < MANY; k += 2) epochs_free(blocks[k], BYTES);
      check_over(epoch);
    }
  }
}

int main(void) {
  RUN(all_are_spared);
  RUN(some_are_spared);
  RUN(one_is_spared);
  RUN(the_rest_goes_back);
  RUN(neighbours_have_ended);
  RUN(a_closed_epoch_is_released);
  RUN(a_reset_spares);
  RUN(walks_find_what_was_spared);
  RUN(the_parent_ends_it);
  RUN(kept_again_it_outlives_the_parent);
  RUN(released_with_its_parent_it_spares_nothing);
  RUN(deferred_calls_keep);
  RUN(the_epoch_is_over_with_the_last_one);
  RUN(a_thread_that_is_inside_spares_as_it_leaves);
  RUN(the_part_stays_warm);
  RUN(poison_passes_it_over);
  RUN(poison_lets_the_parent_end_it);
  RUN_UNLESS_SECURE(dead_pages_go_back);
  RUN(others_free_meanwhile);
  return test_status();
}
