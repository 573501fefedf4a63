#include "heap/over.h"

#include <errno.h>

#include "base/lock.h"
#include "epochs.h"
#include "os_fake.h"
#include "state/change.h"
#include "threads.h"
#include "upkeep/tick.h"

enum { BYTES = 100, LARGE = 100000 };

static unsigned told;
static tslab_epoch last_told;

// What the program may do there.
static void note(tslab_epoch epoch, void *context) {
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK(epochs_is_over(epoch));
  void *block = tslab_malloc(BYTES);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  tslab_free(block);
  tslab_epoch other = epochs_open();
  CHECK_NE(other, epoch);
  epochs_close(other, 0);
  CHECK(context == &told);
  last_told = epoch;
  told++;
}

static void ask(tslab_epoch epoch) { CHECK_EQ(tslab_epoch_on_over(epoch, note, &told), 0); }

static void check_told(tslab_epoch epoch, unsigned times) {
  CHECK_EQ(told, times);
  CHECK_EQ(last_told, epoch);
}

static void *free_small(void *block) {
  epochs_free(block, BYTES);
  return NULL;
}

// The last free tells, whoever frees: in cells, slabs and large blocks.
static void the_last_free_tells(void) {
  static const size_t cells[] = {0, TSLAB_NO_CELLS};
  for (unsigned i = 0; i < 2; i++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = cells[i]);
    ask(epoch);
    void *first = epochs_alloc(epoch, BYTES), *second = epochs_alloc(epoch, LARGE);
    void *third = epochs_alloc(epoch, BYTES);
    epochs_close(epoch, 3);
    epochs_free(first, BYTES);
    epochs_free(second, LARGE);
    CHECK_EQ(told, i);
    threads_run_one(free_small, third);
    check_told(epoch, i + 1);
  }
  epochs_check_all_free();
}

static void a_large_block_is_the_last(void) {
  tslab_epoch epoch = epochs_open();
  ask(epoch);
  void *block = epochs_alloc(epoch, LARGE);
  epochs_close(epoch, 1);
  CHECK_EQ(told, 0);
  epochs_free(block, LARGE);
  check_told(epoch, 1);
}

static void ends_without_survivors_tell(void) {
  tslab_epoch closed = epochs_open(), released = epochs_open(), unused = epochs_open();
  ask(closed);
  ask(released);
  ask(unused);
  epochs_free(epochs_alloc(closed, BYTES), BYTES);
  epochs_alloc(released, BYTES);
  epochs_close(closed, 0);
  check_told(closed, 1);
  CHECK_EQ(tslab_epoch_reset(released), 0);
  CHECK_EQ(told, 1);
  CHECK_EQ(tslab_epoch_release(released), 0);
  check_told(released, 2);
  epochs_close(unused, 0);
  check_told(unused, 3);
}

// Children first; a parent waits for its last child.
static void families_tell(void) {
  tslab_epoch parent = epochs_open(), child = EPOCHS_OPEN(.parent = parent);
  ask(parent);
  ask(child);
  void *block = epochs_alloc(child, BYTES);
  epochs_close(parent, 0);
  epochs_close(child, 1);
  CHECK_EQ(told, 0);
  epochs_free(block, BYTES);
  CHECK_EQ(told, 2);
}

static void a_thread_that_is_inside_tells_as_it_leaves(void) {
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  ask(epoch);
  epochs_enter(&scope, epoch);
  tslab_free(tslab_malloc(BYTES));
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(told, 0);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  check_told(epoch, 1);
}

static void the_thread_stays_where_it_is(void) {
  tslab_epoch epoch = epochs_open(), other = epochs_open();
  tslab_scope scope;
  ask(epoch);
  void *block = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  epochs_enter(&scope, other);
  epochs_free(block, BYTES);
  check_told(epoch, 1);
  CHECK_EQ(tslab_epoch_current(), other);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), other);
  epochs_leave(&scope);
}

static void epochs_that_share_tell_at_their_close(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  tslab_epoch place = epochs_stats(epoch).place;
  CHECK_EQ(tslab_epoch_on_over(place, note, &told), EPERM);
  ask(epoch);
  void *block = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 0);
  check_told(epoch, 1);
  epochs_free(block, BYTES);
  CHECK_EQ(told, 1);
}

static void asked_late_and_not_at_all(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  ask(epoch);
  CHECK_EQ(tslab_epoch_on_over(epoch, NULL, NULL), 0);
  ask(epoch);
  epochs_free(block, BYTES);
  check_told(epoch, 1);
  CHECK_EQ(tslab_epoch_on_over(epoch, note, &told), ESTALE);
  CHECK_EQ(tslab_epoch_on_over(TSLAB_DEFAULT, note, &told), EPERM);
  tslab_epoch next = epochs_open();  // it has the slot, not the callback
  ask(next);
  CHECK_EQ(tslab_epoch_on_over(next, NULL, NULL), 0);
  epochs_close(next, 0);
  epochs_close(epochs_open(), 0);
  CHECK_EQ(told, 1);
}

static void free_the_next(tslab_epoch epoch, void *block) {
  CHECK(epochs_is_over(epoch));
  told++;
  tslab_free(block);
}

// The call frees the last object of another epoch.
static void calls_nest(void) {
  void *block = NULL;
  for (int i = 0; i < 10; i++) {
    tslab_epoch epoch = epochs_open();
    void *next = epochs_alloc(epoch, BYTES);
    CHECK_EQ(tslab_epoch_on_over(epoch, free_the_next, block), 0);
    epochs_close(epoch, 1);
    block = next;
  }
  CHECK_EQ(told, 0);
  tslab_free(block);
  CHECK_EQ(told, 10);
  epochs_check_all_free();
}

// C3: no code of the program's runs in a change, nor under a lock; the next tick makes up for it.
static void calls_wait_for_the_end_of_a_change(void) {
  struct tsl_home *home = tsl_heap_current->home;
  for (unsigned i = 0; i < 2; i++) {
    tslab_epoch epoch = epochs_open(), next;
    ask(epoch);
    void *block = epochs_alloc(epoch, BYTES);
    epochs_close(epoch, 1);
    home = tsl_heap_current->home;
    struct tsl_change change = tsl_change_begin(home);
    if (i == 1) tsl_change_end(change);
    if (i == 1) tsl_busy_begin();
    tslab_free(block);
    CHECK_EQ(told, i);
    CHECK(epochs_is_over(epoch));
    next = epochs_open();  // the slot waits, too
    CHECK_NE(tsl_epoch_slot(next), tsl_epoch_slot(epoch));
    tsl_home_tick(home);
    CHECK_EQ(told, i);
    if (i == 0) tsl_change_end(change);
    if (i == 1) tsl_busy_end();
    tsl_home_tick(home);
    check_told(epoch, i + 1);
    epochs_close(next, 0);
  }
  tsl_home_tick(home);
  CHECK_EQ(told, 2);
}

int main(void) {
  RUN(the_last_free_tells);
  RUN(a_large_block_is_the_last);
  RUN(ends_without_survivors_tell);
  RUN(families_tell);
  RUN(a_thread_that_is_inside_tells_as_it_leaves);
  RUN(the_thread_stays_where_it_is);
  RUN(epochs_that_share_tell_at_their_close);
  RUN(asked_late_and_not_at_all);
  RUN(calls_nest);
  RUN(calls_wait_for_the_end_of_a_change);
  return test_status();
}
