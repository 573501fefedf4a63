#include "state/change.h"

#include <pthread.h>

#include "blocks.h"
#include "os_fake.h"
#include "tslab.h"

static struct tsl_heap *mine, *other;

static void open_homes(void) { blocks_open((size_t)1 << 27, &mine, &other); }

static void changes_nest(void) {
  open_homes();
  CHECK(!tsl_change_is_on(mine->home));
  struct tsl_change outer = tsl_change_begin(mine->home), inner = tsl_change_begin(mine->home);
  CHECK(tsl_change_is_on(mine->home) && !tsl_change_is_on(other->home));
  tsl_change_end(inner);
  CHECK(tsl_change_is_on(mine->home));
  tsl_change_end(outer);
  CHECK(!tsl_change_is_on(mine->home));
}

static void a_pause_ends_with_the_change_going_on(void) {
  open_homes();
  struct tsl_change change = tsl_change_begin(mine->home), pause = tsl_change_pause(mine->home);
  CHECK(!tsl_change_is_on(mine->home));
  tsl_change_end(pause);
  CHECK(tsl_change_is_on(mine->home));
  tsl_change_end(change);
  pause = tsl_change_pause(mine->home);
  tsl_change_end(pause);
  CHECK(!tsl_change_is_on(mine->home));
}

// It is never written.
static void nothing_changes_in_the_empty_heap(void) {
  struct tsl_change change = tsl_change_begin(&tsl_home_empty);
  CHECK(!tsl_change_is_on(&tsl_home_empty));
  tsl_change_end(change);
}

// C4: what the tests below have instead of a barrier is that they have one thread.
static void open_tended(void) {
  open_homes();
  os_fake.has_barrier = true;
  tsl_tend_is_possible = true;
}

static void a_home_is_tended_between_two_changes(void) {
  open_tended();
  struct tsl_change change = tsl_change_begin(mine->home);
  CHECK(!tsl_tend_begin(mine->home) && mine->home->tended == 0);
  CHECK(tsl_tend_begin(other->home));
  CHECK_EQ(other->home->tended, 1);
  tsl_tend_end(other->home);
  tsl_change_end(change);
  CHECK(tsl_tend_begin(mine->home));
  tsl_tend_end(mine->home);
  CHECK_EQ(mine->home->tended, 0);
}

static void no_home_is_tended_without_a_barrier(void) {
  open_homes();
  CHECK(!tsl_tend_begin(mine->home));
}

static uint32_t began;  // [remote]

static void *begin_a_change(void *unused) {
  struct tsl_change change = tsl_change_begin(mine->home);
  tsl_store_release(&began, 1);
  tsl_change_end(change);
  return unused;
}

static void a_change_waits_for_the_helper(void) {
  pthread_t thread;
  open_tended();
  CHECK(tsl_tend_begin(mine->home));
  CHECK_EQ(pthread_create(&thread, NULL, begin_a_change, NULL), 0);
  usleep(20000);
  CHECK_EQ(tsl_load_acquire(&began), 0);
  tsl_tend_end(mine->home);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(tsl_load_acquire(&began), 1);
}

static bool was_on;

static void note(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes, size_t bytes,
                 void *context) {
  (void)epoch, (void)limit, (void)held_bytes, (void)bytes, (void)context;
  was_on = tsl_change_is_on(mine->home);
}

// C3: a limit is met in the middle of a refill, which is a change.
static void no_callback_runs_in_a_change(void) {
  open_homes();
  tslab_epoch id;
  tslab_epoch_options options = {.soft_limit_bytes = 1, .on_limit = note};
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  tsl_heap_current = &tsl_part_take(mine->home, tsl_epoch_slot(id))->heap;
  was_on = true;
  alloc(64);
  CHECK(!was_on && !tsl_change_is_on(mine->home));
}

int main(void) {
  RUN(changes_nest);
  RUN(a_home_is_tended_between_two_changes);
  RUN(no_home_is_tended_without_a_barrier);
  RUN(a_change_waits_for_the_helper);
  RUN(a_pause_ends_with_the_change_going_on);
  RUN(nothing_changes_in_the_empty_heap);
  RUN(no_callback_runs_in_a_change);
  return test_status();
}
