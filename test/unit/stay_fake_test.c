#include "alloc/stay.h"

#include "ends.h"
#include "epochs.h"

enum { BYTES = 100 };

static void allocations_of_a_stay_are_the_epochs(void) {
  struct tsl_stay stay;
  tslab_epoch epoch = epochs_open();
  CHECK(tsl_stay_begin(&stay, epoch, true));
  CHECK_EQ(tslab_epoch_current(), epoch);
  void *block = tslab_malloc(BYTES);
  tsl_stay_end(&stay);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_of(block), epoch);
  tslab_free(block);
}

static void who_comes_late_is_refused(void) {
  struct tsl_stay stay;
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  errno = 0;
  CHECK(!tsl_stay_begin(&stay, epoch, false));
  CHECK_EQ(errno, ECANCELED);
  CHECK_EQ(epochs_stats(epoch).late, 0);
  CHECK(!tsl_stay_begin(&stay, epoch, true));
  CHECK_EQ(epochs_stats(epoch).late, 1);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  epochs_free(block, BYTES);
}

static tslab_epoch closed;

static void begin_late(void) {
  struct tsl_stay stay;
  CHECK(!tsl_stay_begin(&stay, closed, false));
  CHECK_EQ(errno, ECANCELED);
}

// The home that it borrowed goes back.
static void who_comes_late_after_its_end_is_refused(void) {
  closed = epochs_open();
  void *block = epochs_alloc(closed, BYTES);
  epochs_close(closed, 1);
  ends_with(begin_late);
  epochs_free(block, BYTES);
}

static void beside_a_block_is_its_epoch_while_that_lasts(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  void *beside = tsl_malloc_beside(block, BYTES);
  CHECK_EQ(tslab_epoch_of(beside), epoch);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  epochs_close(epoch, 2);
  void *later = tsl_malloc_beside(block, BYTES);
  CHECK_EQ(tslab_epoch_of(later), TSLAB_DEFAULT);
  CHECK_EQ(epochs_stats(epoch).late, 0);
  tslab_free(beside);
  tslab_free(later);
  epochs_free(block, BYTES);
}

int main(void) {
  RUN(allocations_of_a_stay_are_the_epochs);
  RUN(who_comes_late_is_refused);
  RUN(who_comes_late_after_its_end_is_refused);
  RUN(beside_a_block_is_its_epoch_while_that_lasts);
  return test_status();
}
