#include "epochs.h"
#include "tslab.h"

enum { BYTES = 100, SOME = 10, MIB = 1 << 20 };

static const size_t kinds[] = {0, TSLAB_NO_CELLS};  // of first cells

// What the callback was told last.
static struct told {
  unsigned soft, hard;
  size_t held_bytes, wanted_bytes;
  void *to_free;
} told;

static void on_limit(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                     size_t wanted_bytes, void *context) {
  CHECK(context == &told);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(epochs_stats(epoch).state, TSLAB_OPEN);
  *(limit == TSLAB_SOFT_LIMIT ? &told.soft : &told.hard) += 1;
  told.held_bytes = held_bytes;
  told.wanted_bytes = wanted_bytes;
  tslab_free(told.to_free);
  told.to_free = NULL;
}

static void the_soft_limit_is_told_once(void) {
  tslab_epoch epoch =
      EPOCHS_OPEN(.soft_limit_bytes = 2 * MIB, .on_limit = on_limit, .limit_context = &told);
  void *first = epochs_alloc(epoch, MIB), *second = epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 0);
  void *third = epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(told.wanted_bytes, MIB);
  void *fourth = epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 1);
  tslab_free(first);
  tslab_free(second);
  tslab_free(third);
  epochs_alloc(epoch, MIB);
  CHECK_EQ(told.soft, 1);
  epochs_alloc(epoch, BYTES);
  CHECK_EQ(told.soft, 2);
  CHECK_EQ(told.hard, 0);
  tslab_free(fourth);
}

// A callback that allocates where it is told of, which is in the middle of a refill.
static void *given[2 * SOME];
static unsigned given_count, told_count;

static void allocate_in_it(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                           size_t wanted_bytes, void *nothing) {
  (void)limit, (void)held_bytes, (void)wanted_bytes, (void)nothing;
  told_count++;
  for (unsigned i = 0; i < SOME && given_count < 2 * SOME; i++) {
    void *block = tslab_epoch_malloc(epoch, BYTES);
    if (block != NULL) given[given_count++] = block;
  }
}

// Nothing of what both allocated is lost, whether the limit warns or refuses.
static void callbacks_may_allocate_in_the_epoch(void) {
  for (unsigned round = 0; round < 2 * sizeof kinds / sizeof *kinds; round++) {
    size_t limit = round < 2 ? 1 : 0, hard = round < 2 ? 0 : 4 * TSL_UNIT_BYTES, count = 0;
    tslab_epoch epoch =
        EPOCHS_OPEN(.soft_limit_bytes = limit, .hard_limit_bytes = hard, .on_limit = allocate_in_it,
                    .first_cell_bytes = kinds[round % 2]);
    given_count = 0;
    told_count = 0;
    while (told_count == 0 || count < 3000) {
      if (tslab_epoch_malloc(epoch, BYTES) == NULL) break;
      count++;
    }
    CHECK_GE(told_count, 1);
    state_check();
    size_t live = count + given_count;
    CHECK_EQ(epochs_stats(epoch).live_objects, live);
    for (unsigned i = 0; i < given_count; i++) tslab_free(given[i]);
    epochs_close(epoch, count);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    epochs_check_all_free();
  }
}

static void the_hard_limit_refuses(void) {
  tslab_epoch epoch =
      EPOCHS_OPEN(.hard_limit_bytes = 2 * MIB, .on_limit = on_limit, .limit_context = &told);
  void *first = epochs_alloc(epoch, MIB);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, MIB + 1), ENOMEM);
  CHECK_EQ(told.hard, 1);
  CHECK_EQ(told.held_bytes, MIB);
  CHECK_EQ(told.wanted_bytes, MIB + TSL_UNIT_BYTES);
  CHECK_EQ(epochs_stats(epoch).held_bytes, MIB);
  told.to_free = first;
  CHECK(tslab_epoch_malloc(epoch, 2 * MIB) != NULL);
  CHECK_EQ(told.hard, 2);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 1), ENOMEM);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, 1, 5000), ENOMEM);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, 64), ENOMEM);
  CHECK_EQ(epochs_stats(epoch).held_bytes, 2 * MIB);
}

int main(void) {
  RUN(the_soft_limit_is_told_once);
  RUN(callbacks_may_allocate_in_the_epoch);
  RUN(the_hard_limit_refuses);
  return test_status();
}
