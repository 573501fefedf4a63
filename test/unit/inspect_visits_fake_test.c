#include "epoch/inspect.h"
#include "epochs.h"

enum { BYTES = 100, SOME = 10, MANY = 2000, MOST_SEEN = 5000 };

static const size_t kinds[] = {0, TSLAB_NO_CELLS};  // of first cells

static void *blocks[MANY];

// What was seen, each address once.
static struct seen {
  void *block;
  size_t bytes;
} seen[MOST_SEEN];
static unsigned seen_count, stop_after;
static bool free_seen;

static int see(void *block, size_t bytes, void *context) {
  CHECK(context == &seen_count);
  CHECK(seen_count < MOST_SEEN);
  for (unsigned i = 0; i < seen_count; i++) {
    if (seen[i].block == block) CHECK(seen[i].block != block);
  }
  CHECK_EQ(tslab_usable_size(block), bytes);
  seen[seen_count++] = (struct seen){block, bytes};
  if (free_seen) tslab_free(block);
  return seen_count == stop_after ? 42 : 0;
}

static unsigned visit(tslab_epoch epoch) {
  seen_count = 0;
  CHECK_EQ(tslab_epoch_blocks_each(epoch, see, &seen_count), 0);
  return seen_count;
}

static bool was_seen(const void *block) {
  for (unsigned i = 0; i < seen_count; i++) {
    if (seen[i].block == block) return true;
  }
  return false;
}

static void check_visits(tslab_epoch epoch) {
  CHECK_EQ(visit(epoch), 160);
  for (int i = 0; i < 160; i++) CHECK(was_seen(blocks[i]));
  for (int i = 0; i < 160; i += 3) tslab_free(blocks[i]);
  CHECK_EQ(visit(epoch), 160 - 54);
  for (int i = 0; i < 160; i++) CHECK_EQ(was_seen(blocks[i]), i % 3 != 0);
}

static void live_blocks_are_visited(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = epochs_fill(blocks, kinds[kind], 160);
    tslab_epoch other = epochs_fill(blocks, kinds[kind], 8);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    epoch = epochs_fill(blocks, kinds[kind], 160);
    check_visits(epoch);
    CHECK_EQ(visit(other), 8);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(tslab_epoch_release(other), 0);
    epochs_check_all_free();
  }
}

static void survivors_are_visited(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = epochs_fill(blocks, kinds[kind], 160);
    epochs_close(epoch, 160);
    check_visits(epoch);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
}

static void hot_free_blocks_are_not_visited(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (int i = 0; i < SOME; i++) blocks[i] = tslab_malloc(BYTES);
  for (int i = 0; i < SOME / 2; i++) tslab_free(blocks[i]);
  CHECK_EQ(visit(epoch), SOME / 2);
  for (int i = SOME / 2; i < SOME; i++) CHECK(was_seen(blocks[i]));
  void *again = tslab_malloc(BYTES);
  CHECK_EQ(visit(epoch), SOME / 2 + 1);
  CHECK(was_seen(again));
  epochs_leave(&scope);
  epochs_close(epoch, SOME / 2 + 1);
}

static void hot_free_blocks_of_who_stays_are_not_visited(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  blocks[0] = tslab_malloc(BYTES);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(visit(epoch), 1);
  epochs_leave(&scope);
  CHECK_EQ(visit(epoch), 1);
}

static void visits_may_free(void) {
  free_seen = true;
  for (int kind = 0; kind < 4; kind++) {
    tslab_epoch epoch = epochs_fill(blocks, kinds[kind % 2], 160);
    tslab_scope scope;
    if (kind < 2) epochs_close(epoch, 160);
    if (kind >= 2) epochs_enter(&scope, epoch);
    CHECK_EQ(visit(epoch), 160);
    if (kind < 2) CHECK(epochs_is_over(epoch));
    if (kind < 2) continue;
    epochs_check_live(epoch, 0, 0);
    epochs_leave(&scope);
    epochs_close(epoch, 0);
    CHECK(epochs_is_over(epoch));
  }
  epochs_check_all_free();
}

static void visits_end_early(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = epochs_fill(blocks, kinds[kind], 160);
    for (stop_after = 1; stop_after <= 160; stop_after++) {
      seen_count = 0;
      CHECK_EQ(tslab_epoch_blocks_each(epoch, see, &seen_count), 42);
      CHECK_EQ(seen_count, stop_after);
    }
    CHECK_EQ(visit(epoch), 160);
  }
}

static void visits_are_refused(void) {
  tslab_epoch over = epochs_open();
  epochs_close(over, 0);
  CHECK_EQ(tslab_epoch_blocks_each(TSLAB_DEFAULT, see, &seen_count), EPERM);
  CHECK_EQ(tslab_epoch_blocks_each(over, see, &seen_count), ESTALE);
  CHECK_EQ(tslab_epoch_blocks_each(TSLAB_NO_EPOCH, see, &seen_count), ESTALE);
  CHECK_EQ(seen_count, 0);
}

// Epochs that are not over, each once.
static tslab_epoch seen_epochs[64];

static int see_epoch(tslab_epoch epoch, void *context) {
  CHECK(context == seen_epochs);
  seen_epochs[seen_count++] = epoch;
  return seen_count == stop_after ? -7 : 0;
}

static bool lists(const tslab_epoch *epochs, unsigned count) {
  unsigned found = 0;
  seen_count = 0;
  if (tslab_epochs_each(see_epoch, seen_epochs) != 0 || seen_count != count) return false;
  for (unsigned i = 0; i < count; i++) {
    for (unsigned j = 0; j < count; j++) found += seen_epochs[i] == epochs[j];
  }
  return found == count;
}

static void epochs_are_visited(void) {
  tslab_epoch epochs[SOME] = {0};
  CHECK(lists(epochs, 0));
  for (unsigned i = 0; i < SOME; i++) {
    epochs[i] = epochs_open();
    CHECK(lists(epochs, i + 1));
  }
  void *survivor = epochs_alloc(epochs[SOME - 1], BYTES);
  epochs_close(epochs[SOME - 1], 1);
  CHECK(lists(epochs, SOME));
  tslab_free(survivor);
  CHECK(lists(epochs, SOME - 1));
  CHECK_EQ(tslab_epoch_release(epochs[0]), 0);
  epochs[0] = epochs_open();
  CHECK(lists(epochs, SOME - 1));
  stop_after = 4;
  seen_count = 0;
  CHECK_EQ(tslab_epochs_each(see_epoch, seen_epochs), -7);
  CHECK_EQ(seen_count, 4);
}

// As a fork leaves it whose parent was ending it.
static void what_nobody_holds_is_not_visited(void) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch epoch = epochs_open();
  void *survivor = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 1);
  uint32_t *undrained = &tsl_epoch_at(tsl_epoch_slot(epoch))->undrained, holds = *undrained;
  *undrained = 0;
  CHECK(lists(NULL, 0));
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), ESTALE);
  *undrained = holds;
  CHECK(lists(&epoch, 1));
  tslab_free(survivor);
}

static int close_visited(tslab_epoch epoch, void *unused) {
  (void)unused;
  epochs_close(epoch, 0);
  return 0;
}

static void visits_may_end_epochs(void) {
  for (int i = 0; i < SOME; i++) epochs_open();
  CHECK_EQ(tslab_epochs_each(close_visited, NULL), 0);
  CHECK(lists(NULL, 0));
}

int main(void) {
  RUN(live_blocks_are_visited);
  RUN(survivors_are_visited);
  RUN(hot_free_blocks_are_not_visited);
  RUN(hot_free_blocks_of_who_stays_are_not_visited);
  RUN(visits_may_free);
  RUN(visits_end_early);
  RUN(visits_are_refused);
  RUN(epochs_are_visited);
  RUN(what_nobody_holds_is_not_visited);
  RUN(visits_may_end_epochs);
  return test_status();
}
