#include "observe/inventory.h"

#include "epochs.h"
#include "os_fake.h"
#include "takes.h"

enum { BYTES = 100, SOME = 10, MANY = 300, MOST_TOLD = 1000, MIB = 1 << 20 };

static tslab_epoch_stats told[MOST_TOLD];
static unsigned told_count;

static void note(const tslab_epoch_stats *stats, void *context) {
  CHECK(context == told);
  CHECK(told_count < MOST_TOLD);
  told[told_count++] = *stats;
}

static void look(void) {
  told_count = 0;
  tsl_inventory_each(note, told);
  CHECK(os_fake.borrowed == NULL);
}

// What one walk for each epoch finds.
static int check_told(tslab_epoch epoch, void *context) {
  unsigned *number = context;
  tslab_epoch_stats alone = epochs_stats(epoch);
  alone.threads = 0;
  alone.scopes = 0;
  alone.allocated_objects = 0;
  alone.allocated_bytes = 0;
  CHECK(*number < told_count);
  CHECK(memcmp(&told[*number], &alone, sizeof alone) == 0);
  ++*number;
  return 0;
}

static void check_all_told(unsigned count) {
  unsigned number = 0;
  look();
  CHECK_EQ(told_count, count);
  CHECK_EQ(tslab_epochs_each(check_told, &number), 0);
  CHECK_EQ(number, count);
}

static tslab_epoch open_filled(unsigned i) {
  static const size_t sizes[] = {0, 24, BYTES, 1000, 9000, 30000, MIB};
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = i % 3 == 0 ? TSLAB_NO_CELLS : 0);
  for (unsigned j = 0; j < i % 8; j++) epochs_alloc(epoch, sizes[(i + j) % 7]);
  return epoch;
}

static void epochs_are_told_as_each_is_alone(void) {
  for (unsigned i = 0; i < MANY; i++) {
    os_fake.now_ms += i;
    tslab_epoch epoch = open_filled(i);
    if (i % 5 == 0) epochs_close(epoch, i % 8);
  }
  unsigned over = (MANY + 39) / 40;  // closed without an object
  check_all_told(MANY - over);
  CHECK_EQ(os_fake.calls[OS_FAKE_BORROW], 1);
}

static void hot_free_blocks_are_not_live(void) {
  void *blocks[SOME];
  tslab_epoch outer = epochs_open(), epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (unsigned i = 0; i < SOME; i++) blocks[i] = tslab_malloc(BYTES);
  for (unsigned i = 0; i < SOME / 2; i++) tslab_free(blocks[i]);
  check_all_told(2);
  CHECK_EQ(told[0].epoch, outer);
  CHECK_EQ(told[1].live_objects, SOME / 2);
  CHECK_EQ(told[1].live_bytes, SOME / 2 * takes(BYTES));
  epochs_leave(&scope);
}

static void without_memory_for_the_rows_the_same_is_told(void) {
  for (unsigned i = 1; i < 8; i++) open_filled(i);
  os_fake_fail_all(OS_FAKE_BORROW);
  check_all_told(7);
  CHECK_EQ(os_fake.refused, 1);
  CHECK_EQ(told[6].live_objects, 7);
}

static void without_epochs_nothing_is_told_nor_borrowed(void) {
  look();
  tslab_free(tslab_malloc(BYTES));
  look();
  CHECK_EQ(told_count, 0);
  CHECK_EQ(os_fake.calls[OS_FAKE_BORROW], 0);
  epochs_close(epochs_open(), 0);
  look();
  CHECK_EQ(told_count, 0);
}

// The second epoch ends while the first is told, and others are opened.
static void end_second(const tslab_epoch_stats *stats, void *context) {
  tslab_epoch *epochs = context;
  if (told_count == 0) {
    CHECK_EQ(tslab_epoch_release(epochs[1]), 0);
    for (unsigned i = 0; i < SOME; i++) epochs_alloc(epochs_open(), BYTES);
  }
  note(stats, told);
}

static void epochs_of_later_are_not_told(void) {
  tslab_epoch epochs[3];
  for (unsigned i = 0; i < 3; i++) {
    epochs[i] = epochs_open();
    for (unsigned j = 0; j <= i; j++) epochs_alloc(epochs[i], BYTES);
  }
  tsl_inventory_each(end_second, epochs);
  CHECK_EQ(told_count, 2);
  CHECK_EQ(told[0].epoch, epochs[0]);
  CHECK_EQ(told[1].epoch, epochs[2]);
  CHECK_EQ(told[1].live_objects, 3);
  check_all_told(2 + SOME);
}

int main(void) {
  RUN(epochs_are_told_as_each_is_alone);
  RUN(hot_free_blocks_are_not_live);
  RUN(without_memory_for_the_rows_the_same_is_told);
  RUN(without_epochs_nothing_is_told_nor_borrowed);
  RUN(epochs_of_later_are_not_told);
  return test_status();
}
