#include "epochs.h"
#include "tslab.h"

enum { BYTES = 100, MIB = 1 << 20 };

static const size_t kinds[] = {0, TSLAB_NO_CELLS};  // of first cells

// A limit refuses growth, and an epoch that has ended does not: nothing moves.
static void resizing_in_place(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = 4 * MIB);
  char *block = epochs_alloc(epoch, 2 * MIB);
  CHECK(tslab_resize_in_place(block, MIB / 2));
  CHECK_EQ(epochs_stats(epoch).held_bytes, MIB / 2);
  CHECK(tslab_resize_in_place(block, 2 * MIB));
  CHECK_EQ(epochs_stats(epoch).held_bytes, 2 * MIB);
  CHECK(!tslab_resize_in_place(block, 5 * MIB));
  CHECK_EQ(epochs_stats(epoch).held_bytes, 2 * MIB);
  epochs_close(epoch, 1);
  CHECK(tslab_resize_in_place(block, MIB / 2));
  CHECK_EQ(epochs_stats(epoch).live_bytes, MIB / 2);
  tslab_free(block);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static void epoch_realloc_moves_to_the_epoch(void) {
  tslab_epoch from = epochs_open(), to = epochs_open();
  char *block = epochs_alloc(from, BYTES);
  CHECK(tslab_epoch_realloc(to, block, BYTES - 10) == block);
  CHECK_EQ(tslab_epoch_of(block), from);
  block = tslab_epoch_realloc(to, block, 5000);
  CHECK(pattern_is(block, BYTES, BYTES, BYTES - 10));
  CHECK_EQ(tslab_epoch_of(block), to);
  CHECK_EQ(epochs_stats(from).live_objects, 0);
  block = tslab_epoch_realloc(TSLAB_DEFAULT, block, 300000);
  CHECK(pattern_is(block, BYTES, BYTES, BYTES - 10));
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  block = tslab_epoch_realloc(from, block, 3 * MIB);
  CHECK(pattern_is(block, BYTES, BYTES, BYTES - 10));
  CHECK_EQ(tslab_epoch_of(block), from);
  block = tslab_epoch_realloc(to, block, 50);
  CHECK_EQ(tslab_epoch_of(block), to);
  CHECK(tslab_epoch_realloc(to, block, 0) == NULL);
  CHECK_EQ(epochs_stats(from).live_objects + epochs_stats(to).live_objects, 0);
  CHECK_EQ(tslab_epoch_of(tslab_epoch_realloc(to, NULL, 0)), to);
}

// From wherever the thread is.
static void realloc_keeps_the_epoch(void) {
  static const size_t sizes[] = {1, 2000, 20000, 100000, 3 * MIB, 9 * MIB, 500, 24};
  for (int kind = 0; kind < 4; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind % 2]), other = epochs_open();
    tslab_scope scope;
    char *block = epochs_alloc(epoch, BYTES), *plain = tslab_malloc(BYTES);
    if (kind >= 2) epochs_enter(&scope, other);
    for (int i = 0; i < 8; i++) {
      block = tslab_realloc(block, sizes[i]);
      plain = tslab_realloc(plain, sizes[i]);
      CHECK_EQ(tslab_epoch_of(block), epoch);
      CHECK_EQ(tslab_epoch_of(plain), TSLAB_DEFAULT);
      CHECK_EQ(((unsigned char *)block)[0], BYTES);
    }
    if (kind >= 2) epochs_leave(&scope);
    CHECK_EQ(epochs_stats(epoch).live_objects, 1);
    CHECK_EQ(epochs_stats(other).live_objects, 0);
  }
}

static void realloc_leaves_an_epoch_that_ended(size_t before, size_t after) {
  tslab_scope scope;
  tslab_epoch other = epochs_open();
  for (int kind = 0; kind < 4; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind % 2]);
    char *block = epochs_alloc(epoch, before), *wall = epochs_alloc(epoch, 100000);
    epochs_close(epoch, 2);
    if (kind >= 2) epochs_enter(&scope, other);
    char *moved = tslab_realloc(block, after);
    CHECK(moved != block && pattern_is(moved, before, (unsigned)before, before));
    CHECK_EQ(tslab_epoch_of(moved), TSLAB_DEFAULT);
    if (kind >= 2) epochs_leave(&scope);
    CHECK_EQ(epochs_stats(epoch).late, 0);
    tslab_free(wall);
    CHECK(epochs_is_over(epoch));
    tslab_free(moved);
  }
}
static void realloc_leaves_an_ended_epoch(void) {
  realloc_leaves_an_epoch_that_ended(BYTES, 3000);
  realloc_leaves_an_epoch_that_ended(30000, 70000);
  realloc_leaves_an_epoch_that_ended(100000, 300000);
}
static void moved_pages_leave_an_ended_epoch(void) {
  realloc_leaves_an_epoch_that_ended(3 * MIB, 9 * MIB);
}

int main(void) {
  RUN(resizing_in_place);
  RUN(epoch_realloc_moves_to_the_epoch);
  RUN(realloc_keeps_the_epoch);
  RUN(realloc_leaves_an_ended_epoch);
  RUN(moved_pages_leave_an_ended_epoch);
  return test_status();
}
