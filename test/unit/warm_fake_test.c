#include "heap/warm.h"

#include "base/options.h"
#include "epoch/orphans.h"
#include "epochs.h"
#include "heap/mixed.h"
#include "memory/limit.h"
#include "observe/census.h"
#include "os_fake.h"
#include "state/label.h"
#include "takes.h"
#include "threads.h"
#include "told.h"
#include "upkeep/pool.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum { BYTES = 100, SOME = 20, MANY = 5000, BEGIN_MS = 100000, CELL_BYTES = 1 << 16 };

static void *blocks[MANY];

static void start(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  os_fake.now_ms = BEGIN_MS;
  tslab_free(tslab_malloc(1));
}

static struct tsl_home *home(void) { return tsl_heap_current->home; }
static uint32_t warm(void) {
  CHECK(tsl_warm_valid(home()));
  return home()->own->warm_count;
}

static tslab_epoch open_as(const char *label) {
  tslab_epoch epoch = tslab_epoch_open(label, NULL);
  CHECK_NE(epoch, TSLAB_NO_EPOCH);
  return epoch;
}

static void release(tslab_epoch epoch) {
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(epochs_is_over(epoch));
  state_check();
}

// One with objects in two cells: the second one stays.
static void *release_one(const char *label) {
  tslab_epoch epoch = open_as(label);
  void *first = NULL;
  for (unsigned i = 0; i < 100; i++) {
    void *block = epochs_alloc(epoch, BYTES);
    if (epochs_stats(epoch).held_bytes > CELL_BYTES && first == NULL) first = block;
  }
  CHECK(first != NULL);
  release(epoch);
  return first;
}

static void the_next_of_the_label_takes_it(void) {
  start();
  void *first = release_one("one");
  CHECK_EQ(warm(), 1);
  uint32_t heaps = tsl_region.last_heap;
  struct tsl_cell_tally cells = home()->own->cells;
  for (int i = 0; i < 3; i++) {
    tslab_epoch epoch = open_as("one");
    CHECK(epochs_alloc(epoch, BYTES) == first);
    CHECK_EQ(warm(), 0);
    CHECK_EQ(epochs_stats(epoch).held_bytes, CELL_BYTES);
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    state_check();
    release(epoch);
    CHECK_EQ(warm(), 1);
  }
  CHECK_EQ(tsl_region.last_heap, heaps);
  CHECK_EQ(home()->own->cells.taken, cells.taken);
  CHECK_EQ(home()->own->cells.restarted, cells.restarted);
  epochs_check_all_free();
}

static void another_label_does_not(void) {
  start();
  void *first = release_one("one");
  tslab_epoch other = open_as("other");
  CHECK(epochs_alloc(other, BYTES) != first);
  CHECK_EQ(epochs_stats(other).held_bytes, 4096);
  CHECK_EQ(warm(), 1);
  release(other);
  CHECK_EQ(warm(), 2);
  tslab_epoch epoch = open_as("one");
  CHECK(epochs_alloc(epoch, BYTES) == first);
  CHECK_EQ(warm(), 1);
  release(epoch);
  epochs_check_all_free();
}

// Its objects are like any others: they are freed, survive a close, and are in the statistics.
static void objects_there_are_ordinary(void) {
  start();
  release_one("one");
  tslab_epoch epoch = open_as("one");
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  CHECK_EQ(epochs_stats(epoch).live_objects, MANY);
  epochs_free_many(blocks, BYTES, MANY / 2);
  CHECK_EQ(epochs_stats(epoch).live_objects, MANY - MANY / 2);
  state_check();
  epochs_close(epoch, MANY - MANY / 2);
  CHECK_EQ(warm(), 0);
  epochs_free_many(blocks + MANY / 2, BYTES, MANY - MANY / 2);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static tslab_epoch open_with(const tslab_epoch_options *options) {
  tslab_epoch epoch = tslab_epoch_open("one", options);
  CHECK_NE(epoch, TSLAB_NO_EPOCH);
  return epoch;
}

static tslab_epoch open_below(tslab_epoch parent) {
  return open_with(&(tslab_epoch_options){.size = sizeof(tslab_epoch_options), .parent = parent});
}

static void what_has_options_neither_takes_nor_leaves(void) {
  start();
  const tslab_epoch_options wants[] = {
      {.size = sizeof *wants, .soft_limit_bytes = 1 << 20},
      {.size = sizeof *wants, .hard_limit_bytes = 1 << 20},
      {.size = sizeof *wants, .purge = TSLAB_PURGE_NOW},
      {.size = sizeof *wants, .purge = TSLAB_PURGE_KEEP},
      {.size = sizeof *wants, .first_cell_bytes = TSLAB_NO_CELLS},
      {.size = sizeof *wants, .first_cell_bytes = CELL_BYTES},
      {.size = sizeof *wants, .threads = 8},
  };
  for (unsigned i = 0; i < sizeof wants / sizeof *wants; i++) {
    void *first = release_one("one");
    CHECK_EQ(warm(), 1);
    tslab_epoch epoch = open_with(&wants[i]);
    CHECK(epochs_alloc(epoch, BYTES) != first);
    CHECK_EQ(warm(), 1);
    tslab_trim(0);
    CHECK_EQ(warm(), 0);
    release(epoch);
    CHECK_EQ(warm(), 0);
  }
  epochs_check_all_free();
}

// Who holds it, its ancestors included, is charged for it, and no longer than that.
static void it_comes_below_a_parent_and_goes(void) {
  start();
  void *first = release_one("one");
  tslab_epoch top = open_as("top"), below = open_below(top), epoch = open_below(below);
  CHECK(epochs_alloc(epoch, BYTES) == first);
  CHECK_EQ(warm(), 0);
  CHECK_EQ(epochs_stats(epoch).held_bytes, CELL_BYTES);
  CHECK_EQ(epochs_stats(below).held_bytes, CELL_BYTES);
  CHECK_EQ(epochs_stats(top).held_bytes, CELL_BYTES);
  state_check();
  release(epoch);
  CHECK_EQ(warm(), 1);
  CHECK_EQ(epochs_stats(below).held_bytes, 0);
  CHECK_EQ(epochs_stats(top).held_bytes, 0);
  CHECK_EQ(epochs_stats(top).peak_bytes, CELL_BYTES);
  CHECK(epochs_alloc(open_as("one"), BYTES) == first);
}

static void check_limited_parent(size_t soft_bytes, size_t hard_bytes) {
  tslab_epoch parent = open_as("parent");
  CHECK_EQ(tslab_epoch_set_limits(parent, soft_bytes, hard_bytes), 0);
  void *first = release_one("one");
  tslab_epoch epoch = open_below(open_below(parent));
  CHECK(epochs_alloc(epoch, BYTES) != first);
  CHECK_EQ(warm(), 1);
  CHECK_EQ(epochs_stats(parent).held_bytes, 4096);
  tslab_trim(0);
  release(epoch);
  CHECK_EQ(warm(), 1);
  CHECK_EQ(epochs_stats(parent).held_bytes, 0);
  release(parent);
  tslab_trim(0);
}

static void limits_of_ancestors_keep_it_away(void) {
  start();
  check_limited_parent(1 << 20, 0);
  check_limited_parent(0, 1 << 20);
  epochs_check_all_free();
}

static void limits_that_are_set_later_count(void) {
  start();
  release_one("one");
  tslab_epoch epoch = open_as("one");
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, 8192), 0);
  epochs_alloc(epoch, BYTES);
  CHECK_EQ(warm(), 1);
  CHECK_LE(epochs_stats(epoch).held_bytes, 8192);
  release(epoch);
  CHECK_EQ(warm(), 1);
  epochs_check_all_free();
}

static void parts_with_slabs_and_without_cells_leave_none(void) {
  start();
  tslab_epoch epoch = open_as("one");
  epochs_alloc(epoch, 20000);
  epochs_alloc(epoch, BYTES);
  release(epoch);
  CHECK_EQ(warm(), 0);
  release(open_as("one"));
  CHECK_EQ(warm(), 0);
  epochs_check_all_free();
}

// The cells before its newest went back with their last block.
static void close_one_freed(void) {
  tslab_epoch epoch = open_as("one");
  epochs_alloc_many(blocks, epoch, BYTES, 100);
  epochs_free_many(blocks, BYTES, 100);
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
  state_check();
}

static void one_that_is_closed_leaves_it_where_all_was_freed(void) {
  start();
  close_one_freed();
  CHECK_EQ(warm(), 1);
  struct tsl_cell_tally cells = home()->own->cells;
  for (int i = 0; i < 3; i++) {
    close_one_freed();
    CHECK_EQ(warm(), 1);
  }
  tslab_epoch epoch = open_as("one");
  epochs_alloc(epoch, BYTES);
  release(epoch);
  CHECK_EQ(warm(), 1);
  CHECK_EQ(home()->own->cells.taken, cells.taken);
  epochs_check_all_free();
}

static void *free_first(void *unused) {
  epochs_free(blocks[0], BYTES);
  return unused;
}

// A survivor keeps the cell that it lies in, also one that another thread has just freed.
static void a_survivor_keeps_its_cell(void) {
  start();
  release_one("one");
  for (size_t survivors = 0; survivors < 2; survivors++) {
    tslab_epoch epoch = open_as("one");
    epochs_alloc_many(blocks, epoch, BYTES, SOME);
    epochs_free_many(blocks + 1, BYTES, SOME - 1);
    if (survivors == 0) threads_run_one(free_first, NULL);
    epochs_close(epoch, survivors);
    CHECK_EQ(warm(), 0);
    if (survivors != 0) CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    if (survivors != 0) epochs_free(blocks[0], BYTES);
    CHECK(epochs_is_over(epoch));
    release_one("one");
    CHECK_EQ(warm(), 1);
  }
  epochs_check_all_free();
}

static void a_few_stay(void) {
  start();
  static tslab_epoch epochs[2 * TSL_HOME_WARM];
  for (unsigned i = 0; i < 2 * TSL_HOME_WARM; i++) {
    epochs[i] = open_as("one");
    epochs_alloc(epochs[i], BYTES);
  }
  for (unsigned i = 0; i < 2 * TSL_HOME_WARM; i++) release(epochs[i]);
  CHECK_EQ(warm(), TSL_HOME_WARM);
  for (unsigned i = 0; i < 2 * TSL_HOME_WARM; i++) {
    epochs[i] = open_as("one");
    epochs_alloc(epochs[i], BYTES);
  }
  CHECK_EQ(warm(), 0);
  for (unsigned i = 0; i < 2 * TSL_HOME_WARM; i++)
    CHECK_EQ(epochs_stats(epochs[i]).live_objects, 1);
  for (unsigned i = 0; i < 2 * TSL_HOME_WARM; i++) release(epochs[i]);
  epochs_check_all_free();
}

// Of a label that has many open none stays: each would take its cell, as large as it once grew, to
// the next one, which may need little.
static void of_many_none_stays(void) {
  enum { OPEN = 17 };
  tslab_epoch epochs[OPEN];
  start();
  release_one("one");
  for (int i = 0; i < OPEN; i++) epochs_alloc(epochs[i] = open_as("one"), BYTES);
  CHECK_EQ(warm(), 0);
  release(epochs[0]);
  CHECK_EQ(warm(), 0);
  release(epochs[1]);
  CHECK_EQ(warm(), 1);
  for (int i = 2; i < OPEN; i++) release(epochs[i]);
  epochs_check_all_free();
}

// W3.
static void what_waited_long_goes_back(void) {
  start();
  release_one("one");
  os_fake.now_ms += tsl_limit_delay_ms();
  tsl_home_tick(home());
  CHECK_EQ(warm(), 1);
  os_fake.now_ms += 1;
  tsl_home_tick(home());
  CHECK_EQ(warm(), 0);
  state_check();
  epochs_check_all_free();
}

// Its thread ticks once it has joined: what it waited for is still there.
static void one_that_waited_long_is_taken_before_the_tick(void) {
  start();
  void *first = release_one("one");
  release_one("other");
  os_fake.now_ms += 2 * tsl_limit_delay_ms();
  tslab_epoch epoch = open_as("one");
  CHECK(epochs_alloc(epoch, BYTES) == first);
  CHECK_EQ(warm(), 0);
  release(epoch);
  epochs_check_all_free();
}

// A thread that only takes warm parts ticks as it does: what it no longer needs goes back.
static void those_that_are_released_tick(void) {
  start();
  release_one("one");
  for (unsigned i = 0; i < SOME; i++) {
    os_fake.now_ms += tsl_limit_delay_ms() / 10 + 10;
    tslab_epoch epoch = open_as("other");
    epochs_alloc(epoch, BYTES);
    release(epoch);
  }
  CHECK_EQ(warm(), 1);
  CHECK_EQ(home()->own->warm[0].label, tsl_label_intern("other"));
}

static void those_that_are_closed_tick(void) {
  start();
  release_one("other");
  for (unsigned i = 0; i < 12; i++) {
    os_fake.now_ms += tsl_limit_delay_ms() / 10 + 10;
    close_one_freed();
  }
  CHECK_EQ(warm(), 1);
  CHECK_EQ(home()->own->warm[0].label, tsl_label_intern("one"));
}

static void near_the_soft_limit_none_stays(void) {
  start();
  release_one("one");
  tsl_options.soft_limit = 1;
  CHECK(tsl_limit_is_near());
  tsl_home_tick(home());
  CHECK_EQ(warm(), 0);
  release_one("one");
  CHECK_EQ(warm(), 0);
}

static struct tsl_home *ended;

static void *release_and_end(void *unused) {
  release_one("one");
  CHECK_EQ(warm(), 1);
  ended = home();
  return unused;
}

static void none_stays_behind_a_thread(void) {
  start();
  threads_run_one(release_and_end, NULL);
  CHECK_EQ(ended->own->warm_count, 0);
  epochs_check_all_free();
}

static tslab_epoch common;
static pthread_barrier_t meeting;

static void *allocate_and_wait(void *unused) {
  blocks[1] = epochs_alloc(common, BYTES);
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);  // the epoch was released
  CHECK_EQ(warm(), 0);
  return unused;
}

// Another thread's part goes back as ever; one's own stays.
static void who_releases_keeps_its_own(void) {
  pthread_t thread;
  start();
  common = open_as("one");
  epochs_alloc(common, BYTES);
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, 2), 0);
  CHECK_EQ(pthread_create(&thread, NULL, allocate_and_wait, NULL), 0);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(tslab_epoch_release(common), 0);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(warm(), 1);
  epochs_check_all_free();
}

static void poison_keeps_none(void) {
  start();
  tsl_epochs_wait = true;
  tslab_epoch epoch = open_as("one");
  epochs_alloc(epoch, BYTES);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(warm(), 0);
  epoch = open_as("one");
  epochs_free(epochs_alloc(epoch, BYTES), BYTES);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(warm(), 0);
  epoch = open_as("one");
  epochs_free(epochs_alloc(epoch, BYTES), BYTES);
  epochs_close(epoch, 0);
  CHECK_EQ(warm(), TSL_SECURE ? 0 : 1);
}

// A release ends children as well: their parts stay, and its own.
static void children_that_end_with_their_parent_leave_theirs(void) {
  start();
  tslab_epoch parent = open_as("one");
  epochs_alloc(parent, BYTES);
  epochs_alloc(open_below(parent), BYTES);
  epochs_alloc(open_below(parent), BYTES);
  release(parent);
  CHECK_EQ(warm(), 3);
  epochs_check_all_free();
}

// What the epoch still holds is told once the part has left it.
static void who_leaves_later_tells_what_is_held(void) {
  start();
  tsl_report_start();
  tslab_epoch epoch = open_as("one");
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  tslab_free(tslab_malloc(BYTES));
  void *large = tslab_malloc(1 << 20);
  CHECK(large != NULL);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(warm(), 0);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  CHECK_EQ(warm(), 1);
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->id, epoch);
  CHECK_EQ(row->held_bytes, epochs_stats(epoch).held_bytes);
  CHECK_EQ(row->held_bytes, 1 << 20);
  tslab_free(large);
  CHECK(epochs_is_over(epoch));
}

// In the child of a fork they are whole, and serve who takes the lost thread's home.
static void a_fork_finds_them_whole(void) {
  start();
  struct tsl_heap *mine = tsl_heap_current;
  void *my_first = release_one("one");
  struct tsl_home *lost = tsl_home_take();
  tsl_heap_current = &lost->heap;
  void *first = release_one("one");
  CHECK_EQ(warm(), 1);
  tsl_heap_current = mine;
  tsl_orphans_after_fork(home());
  tsl_orphans_adopt();
  CHECK_EQ(lost->hold, TSL_HOME_POOLED);
  CHECK_EQ(warm(), 1);
  CHECK(epochs_alloc(open_as("one"), BYTES) == my_first);
  CHECK(tsl_home_take() == lost);
  tsl_heap_current = &lost->heap;
  if (warm() == 1) CHECK(epochs_alloc(open_as("one"), BYTES) == first);
  state_check();
}

// It is of no epoch, and as free as other memory at hand.
static void the_census_counts_it_as_free(void) {
  struct tsl_census before, after;
  start();
  release_one("one");
  tslab_trim(0);
  tsl_census_take(&before);
  release_one("one");
  CHECK_EQ(warm(), 1);
  tsl_census_take(&after);
  CHECK_EQ(after.live_objects, before.live_objects);
  CHECK_EQ(after.live_bytes, before.live_bytes);
  CHECK(after.free_bytes > before.free_bytes);
}

static void statistics_follow(void) {
  start();
  tsl_report_start();
  uint64_t allocations = told_allocations();
  for (int i = 0; i < SOME; i++) {
    tslab_epoch epoch = open_as("one");
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    for (int k = 0; k < SOME; k++) CHECK(tslab_malloc(BYTES) != NULL);
    epochs_leave(&scope);
    check_told(epoch, SOME, SOME * takes(BYTES));
    const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
    CHECK_EQ(row->id, epoch);
    CHECK_EQ(row->held_bytes, epochs_stats(epoch).held_bytes);
    release(epoch);
    CHECK_EQ(row->id, 0);
    CHECK_EQ(told_of_epoch(tsl_epoch_slot(epoch)).objects, 0);
    CHECK_GE(told_allocations(), allocations + SOME);
    allocations = told_allocations();
  }
  CHECK_EQ(warm(), 1);
}

// Also where all lay in the only cell of a part.
static void what_others_freed_is_not_told_of_the_next(void) {
  start();
  tsl_report_start();
  release_one("one");
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = open_as("one");
    epochs_alloc_many(blocks, epoch, BYTES, SOME);
    threads_run_one(free_first, NULL);
    check_told(epoch, SOME - 1, (SOME - 1) * takes(BYTES));
    release(epoch);
    CHECK_EQ(warm(), 1);
  }
  tslab_epoch epoch = open_as("one");
  epochs_alloc_many(blocks, epoch, BYTES, SOME);
  check_told(epoch, SOME, SOME * takes(BYTES));
  release(epoch);
}

// Nor what they freed in a cell that was given back before the release.
static void what_went_before_is_not_told_of_the_next(void) {
  start();
  tsl_report_start();
  release_one("one");
  tslab_epoch epoch = open_as("one");
  tslab_scope scope;
  epochs_alloc_many(blocks, epoch, BYTES, SOME);
  threads_run_one(free_first, NULL);
  epochs_enter(&scope, epoch);
  for (unsigned i = 1; i < SOME; i++) tslab_free(blocks[i]);
  tsl_mixed_collect(tsl_heap_current);
  CHECK_EQ(tsl_heap_current->cell_count, 0);
  epochs_leave(&scope);
  epochs_alloc(epoch, BYTES);
  release(epoch);
  CHECK_EQ(warm(), 1);
  epoch = open_as("one");
  epochs_alloc_many(blocks, epoch, BYTES, SOME);
  check_told(epoch, SOME, SOME * takes(BYTES));
  release(epoch);
}

static const struct tsl_bins_row *bins_of(const struct tsl_home *of) {
  return TSL_ROW(bins, of->heap.number);
}

// A thread that only leaves epochs that others release passes no tick.
static void *leave_after_the_release(void *unused) {
  tslab_scope scope;
  epochs_enter(&scope, common);
  blocks[1] = tslab_malloc(BYTES);
  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);  // the epoch was released
  uint64_t parts = bins_of(home())->end_parts;
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  CHECK_EQ(warm(), 1);
  CHECK_EQ(bins_of(home())->end_parts, parts + 1);
  return unused;
}

static void who_leaves_tells_of_the_end(void) {
  pthread_t thread;
  start();
  tsl_report_start();
  common = open_as("one");
  CHECK_EQ(pthread_barrier_init(&meeting, NULL, 2), 0);
  CHECK_EQ(pthread_create(&thread, NULL, leave_after_the_release, NULL), 0);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(tslab_epoch_release(common), 0);
  pthread_barrier_wait(&meeting);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void) {
  RUN_UNLESS_SECURE(the_next_of_the_label_takes_it);
  RUN_UNLESS_SECURE(another_label_does_not);
  RUN_UNLESS_SECURE(objects_there_are_ordinary);
  RUN_UNLESS_SECURE(what_has_options_neither_takes_nor_leaves);
  RUN_UNLESS_SECURE(it_comes_below_a_parent_and_goes);
  RUN_UNLESS_SECURE(limits_of_ancestors_keep_it_away);
  RUN_UNLESS_SECURE(limits_that_are_set_later_count);
  RUN_UNLESS_SECURE(parts_with_slabs_and_without_cells_leave_none);
  RUN_UNLESS_SECURE(one_that_is_closed_leaves_it_where_all_was_freed);
  RUN_UNLESS_SECURE(a_survivor_keeps_its_cell);
  RUN_UNLESS_SECURE(a_few_stay);
  RUN_UNLESS_SECURE(of_many_none_stays);
  RUN_UNLESS_SECURE(what_waited_long_goes_back);
  RUN_UNLESS_SECURE(one_that_waited_long_is_taken_before_the_tick);
  RUN_UNLESS_SECURE(those_that_are_released_tick);
  RUN_UNLESS_SECURE(those_that_are_closed_tick);
  RUN_UNLESS_SECURE(near_the_soft_limit_none_stays);
  RUN_UNLESS_SECURE(none_stays_behind_a_thread);
  RUN_UNLESS_SECURE(who_releases_keeps_its_own);
  RUN(poison_keeps_none);
  RUN_UNLESS_SECURE(children_that_end_with_their_parent_leave_theirs);
  RUN_UNLESS_SECURE(who_leaves_later_tells_what_is_held);
  RUN_UNLESS_SECURE(a_fork_finds_them_whole);
  RUN_UNLESS_SECURE(the_census_counts_it_as_free);
  RUN_UNLESS_SECURE(statistics_follow);
  RUN_UNLESS_SECURE(what_others_freed_is_not_told_of_the_next);
  RUN_UNLESS_SECURE(what_went_before_is_not_told_of_the_next);
  RUN_UNLESS_SECURE(who_leaves_tells_of_the_end);
  return test_status();
}
