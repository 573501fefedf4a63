// What a program keeps with an epoch, and changes in it.
#include <pthread.h>

#include "epochs.h"
#include "os_fake.h"
#include "threads.h"
#include "tslab.h"

enum { BYTES = 100, ROUNDS = 400000, LARGE = 100 << 10, HELD = 128 << 10 };

static void check_no_user(tslab_epoch epoch) {
  errno = 0;
  CHECK(tslab_epoch_get_user(epoch) == NULL);
  CHECK_EQ(errno, ESTALE);
}

static void user_pointer_is_kept(void) {
  int first, second;
  tslab_epoch epoch = epochs_open(), other = epochs_open();
  errno = EXDEV;
  CHECK(tslab_epoch_get_user(epoch) == NULL);
  CHECK_EQ(tslab_epoch_set_user(epoch, &first), 0);
  CHECK_EQ(tslab_epoch_set_user(other, &second), 0);
  CHECK(tslab_epoch_get_user(epoch) == &first && tslab_epoch_get_user(other) == &second);
  CHECK_EQ(tslab_epoch_set_user(epoch, NULL), 0);
  CHECK(tslab_epoch_get_user(epoch) == NULL);
  CHECK_EQ(errno, EXDEV);
  epochs_close(epoch, 0);
  CHECK(tslab_epoch_get_user(other) == &second);
}

static tslab_epoch ending;

static void user_is_still_there(void *expected) { CHECK(tslab_epoch_get_user(ending) == expected); }

// It is there as long as the epoch is, and nobody else's then.
static void user_pointer_ends_with_the_epoch(void) {
  int user;
  ending = epochs_open();
  void *survivor = epochs_alloc(ending, BYTES);
  CHECK_EQ(tslab_epoch_set_user(ending, &user), 0);
  CHECK_EQ(tslab_epoch_defer(ending, user_is_still_there, &user), 0);
  epochs_close(ending, 1);
  CHECK(tslab_epoch_get_user(ending) == &user);
  CHECK_EQ(tslab_epoch_set_user(ending, &ending), 0);
  CHECK(tslab_epoch_get_user(ending) == &ending);
  epochs_free(survivor, BYTES);
  check_no_user(ending);
  CHECK_EQ(tslab_epoch_set_user(ending, &user), ESTALE);
  tslab_epoch next = epochs_open();
  CHECK_EQ(tsl_epoch_slot(next), tsl_epoch_slot(ending));
  CHECK(tslab_epoch_get_user(next) == NULL);
  check_no_user(ending);
}

static void nothing_is_kept_with_the_default_epoch(void) {
  int user;
  CHECK_EQ(tslab_epoch_set_user(TSLAB_DEFAULT, &user), EPERM);
  errno = EXDEV;
  CHECK(tslab_epoch_get_user(TSLAB_DEFAULT) == NULL);
  CHECK_EQ(errno, EXDEV);
  CHECK_EQ(tslab_epoch_set_user(TSLAB_NO_EPOCH, &user), ESTALE);
  check_no_user(TSLAB_NO_EPOCH);
}

// One thread opens epochs one after the other in the same slot, each with its id as its user; the
// other one asks by the ids.
static tslab_epoch shown;  // [remote]
static bool is_done;       // [remote]

static void *show(void *unused) {
  for (int i = 0; i < ROUNDS; i++) {
    tslab_epoch epoch = epochs_open();
    CHECK_EQ(tslab_epoch_set_user(epoch, (void *)(uintptr_t)epoch), 0);
    tsl_store_release(&shown, epoch);  // pairs: test-shown
    epochs_close(epoch, 0);
  }
  tsl_store_relaxed(&is_done, true);
  return unused;
}

static void nobody_sees_the_next_epochs_user(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, show, NULL), 0);
  while (!tsl_load_relaxed(&is_done)) {
    tslab_epoch epoch = tsl_load_acquire(&shown);  // pairs: test-shown
    void *user = epoch == TSLAB_DEFAULT ? NULL : tslab_epoch_get_user(epoch);
    CHECK(user == NULL || user == (void *)(uintptr_t)epoch);
  }
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

// ---- Limits ----

static struct told {
  unsigned soft, hard;
  size_t raised_to_bytes;
} told;

static void on_limit(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                     size_t wanted_bytes, void *context) {
  CHECK(context == &told && held_bytes + wanted_bytes != 0);
  *(limit == TSLAB_SOFT_LIMIT ? &told.soft : &told.hard) += 1;
  if (told.raised_to_bytes != 0)
    CHECK_EQ(tslab_epoch_set_limits(epoch, 0, told.raised_to_bytes), 0);
}

// All memory is taken in large blocks, each of so many bytes.
static void take(tslab_epoch epoch, unsigned blocks) {
  for (unsigned i = 0; i < blocks; i++) epochs_alloc(epoch, LARGE);
}

static tslab_epoch open_limited(size_t soft_bytes, size_t hard_bytes) {
  return EPOCHS_OPEN(.soft_limit_bytes = soft_bytes, .hard_limit_bytes = hard_bytes,
                     .on_limit = on_limit, .limit_context = &told);
}

static void hard_limit_is_raised_and_lowered(void) {
  tslab_epoch epoch = open_limited(0, 2 * HELD);
  take(epoch, 2);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, LARGE), ENOMEM);
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, 3 * HELD), 0);
  take(epoch, 1);
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, HELD), 0);
  CHECK_EQ(epochs_stats(epoch).live_objects, 3);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, LARGE), ENOMEM);
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, 0), 0);
  take(epoch, 3);
  CHECK_EQ(told.hard, 2);
}

static void soft_limit_is_told_again_when_it_changes(void) {
  tslab_epoch epoch = open_limited(HELD, 0);
  take(epoch, 3);
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(tslab_epoch_set_limits(epoch, 5 * HELD, 0), 0);
  take(epoch, 2);
  CHECK_EQ(told.soft, 1);
  take(epoch, 2);
  CHECK_EQ(told.soft, 2);
  CHECK_EQ(tslab_epoch_set_limits(epoch, HELD, 0), 0);
  take(epoch, 2);
  CHECK_EQ(told.soft, 3);
}

static void the_callback_raises_the_limit(void) {
  tslab_epoch epoch = open_limited(0, HELD);
  told.raised_to_bytes = 2 * HELD;
  take(epoch, 2);
  CHECK_EQ(told.hard, 1);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, LARGE), ENOMEM);
}

static void limits_of_who_has_none(void) {
  tslab_epoch over = epochs_open(), closed = epochs_open();
  epochs_alloc(closed, BYTES);
  epochs_close(closed, 1);
  epochs_close(over, 0);
  CHECK_EQ(tslab_epoch_set_limits(over, 1, 1), ESTALE);
  CHECK_EQ(tslab_epoch_set_limits(closed, 1, 1), ECANCELED);
  CHECK_EQ(tslab_epoch_set_limits(TSLAB_DEFAULT, 1, 1), EPERM);
  CHECK(tslab_malloc(BYTES) != NULL);
}

int main(void) {
  RUN(hard_limit_is_raised_and_lowered);
  RUN(soft_limit_is_told_again_when_it_changes);
  RUN(the_callback_raises_the_limit);
  RUN(limits_of_who_has_none);
  RUN(user_pointer_is_kept);
  RUN(user_pointer_ends_with_the_epoch);
  RUN(nothing_is_kept_with_the_default_epoch);
  RUN(nobody_sees_the_next_epochs_user);
  return test_status();
}
