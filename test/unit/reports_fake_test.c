#include "upkeep/reports.h"

#include "base/options.h"
#include "epochs.h"
#include "takes.h"
#include "tell/points.h"
#include "tell/sample.h"
#include "tellers.h"
#include "told.h"

static void nothing_is_told_before_there_is_a_file(void) {
  open_homes();
  alloc(100);
  tell();
  CHECK(!tsl_report_is_on());
  CHECK(os_fake.shared == NULL);
}

static void the_first_epoch_with_memory_makes_it(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  CHECK(!tsl_report_is_on());
  epochs_alloc(epoch, 100);
  CHECK(tsl_report_is_on());
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->id, epoch);
  CHECK_EQ(row->state, TSLAB_OPEN);
  CHECK_EQ(row->held_bytes, TSL_SECURE ? 65536 : 4096);
  const struct tsl_labels_row *label = TSL_ROW(labels, row->label);
  CHECK(label != NULL && strcmp(label->text, "test") == 0);
  check_told(epoch, 1, takes(100));
}

static void age_makes_it(void) {
  open_homes();
  os_fake.now_ms = 1000;
  tsl_report_tick(mine->home);
  os_fake.now_ms += tsl_option(stats_delay_ms) - 1;
  tsl_report_tick(mine->home);
  CHECK(!tsl_report_is_on());
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  CHECK(tsl_report_is_on());
}

// Large blocks refill nothing, so no tick comes by.
static void large_blocks_make_it_when_they_are_many_or_late(void) {
  open_homes();
  os_fake.now_ms = 1000;
  alloc(1 << 20);
  CHECK(!tsl_report_is_on());
  alloc(2 << 20);
  CHECK(tsl_report_is_on());
  CHECK_EQ(((struct tsl_process_row *)TSL_ROW(process, 0))->large_objects, 2);
}

static void a_large_block_of_an_old_process_makes_it(void) {
  open_homes();
  os_fake.now_ms = 1000;
  alloc(100000);
  os_fake.now_ms += tsl_option(stats_delay_ms);
  CHECK(!tsl_report_is_on());
  alloc(100000);
  CHECK(tsl_report_is_on());
}

static void a_large_block_that_grows_makes_it(void) {
  open_homes();
  os_fake.now_ms = 1000;
  void *block = alloc(100000);
  CHECK(!tsl_report_is_on());
  CHECK(tsl_realloc(block, 3 << 20) != NULL);
  CHECK(tsl_report_is_on());
}

// Within one millisecond, and then silence: the blocks are told, but for 512 KiB.
static void many_blocks_make_it_at_once(void) {
  open_homes();
  os_fake.now_ms = 1000;
  unsigned count = 30000;
  alloc_many(100, count);
  CHECK(tsl_report_is_on());
  uint64_t told = told_of_class(takes_class(100));
  CHECK(told <= count && told >= count - (512 << 10) / takes(100));
}

// A fork inherits what its parent opened, and is not thereby a process that holds much.
static void a_child_of_fork_opens_much_itself(void) {
  open_homes();
  tsl_options.stats = 0;
  alloc(4 << 20);
  tsl_options.stats = 1;
  tsl_report_after_fork();
  alloc(100000);
  CHECK(!tsl_report_is_on());
  alloc(4 << 20);
  CHECK(tsl_report_is_on());
}

static void check_sampling(void) {
  CHECK(tsl_report_is_on());
  CHECK_EQ(tsl_points_mean, TSL_SECURE ? 0 : 64 << 10);
}

static void who_asks_for_samples_has_them_from_the_first_block_on(void) {
  tsl_options.sample_bytes = 64 << 10;
  open_homes();
  alloc(100);
  check_sampling();
}

// Also where that lies in an epoch, in a child, too.
static void and_from_the_first_block_of_an_epoch_on(void) {
  tsl_options.sample_bytes = 64 << 10;
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  check_sampling();
  tsl_report_after_fork();
  tsl_sample_after_fork();
  CHECK_EQ(tsl_points_mean, 0);
  epochs_alloc(epoch, 5000);
  check_sampling();
}

static void an_option_keeps_it_away(void) {
  open_homes();
  tsl_options.stats = 0;
  tsl_options.stats_delay_ms = 0;
  tsl_options.sample_bytes = 64 << 10;
  alloc(100);
  epochs_alloc(epochs_open(), 100);
  tsl_report_tick(mine->home);
  CHECK(!tsl_report_is_on());
  CHECK_EQ(os_fake.calls[OS_FAKE_SHARE], 0);
}

static void a_refusal_is_final_and_harmless(void) {
  open_homes();
  os_fake_fail_next(OS_FAKE_SHARE);
  for (int i = 0; i < 3; i++) epochs_alloc(epochs_open(), 100);
  CHECK(!tsl_report_is_on());
  CHECK_EQ(os_fake.calls[OS_FAKE_SHARE], 1);
}

// Without rows for heaps nobody reports; they are asked for again.
static void rows_that_come_late_are_taken(void) {
  open_homes();
  os_fake.now_ms = 1;
  tslab_epoch epoch = epochs_open();
  os_fake.failures[OS_FAKE_SHARE_MORE].from = 2;  // there is a file, without rows
  tsl_report_start();
  CHECK(!tsl_report_is_on());
  os_fake_recover();
  os_fake.now_ms += 1000;
  epochs_alloc(epoch, 100);
  CHECK(tsl_report_is_on());
  check_told(epoch, 1, takes(100));
}

// What lived before the file is in it once its thread comes by.
static void what_was_there_is_told(void) {
  open_homes();
  alloc_many(64, 100);
  be(other);
  alloc_many(64, 50);
  tsl_report_start();
  tell();
  CHECK_EQ(told_of_class(takes_class(64)), 150);
  const struct tsl_epochs_row *row = TSL_ROW(epochs, 0);
  CHECK_EQ(row->id, 0);
}

static void epochs_that_hold_memory_are_told(void) {
  open_homes();
  tsl_options.stats = 0;
  tslab_epoch first = epochs_open(), last = epochs_open();
  epochs_alloc(first, 100);
  epochs_alloc(last, 5000);
  tsl_options.stats = 1;
  tsl_report_start();
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(first));
  CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(first))->held_bytes);
  row = TSL_ROW(epochs, tsl_epoch_slot(last));
  CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(last))->held_bytes);
}

static void a_child_of_fork_tells_of_itself(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  tsl_report_after_fork();
  CHECK(!tsl_report_is_on());
  epochs_alloc(epoch, 5000);
  CHECK(tsl_report_is_on());
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->id, epoch);
  CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(epoch))->held_bytes);
}

int main(void) {
  RUN(nothing_is_told_before_there_is_a_file);
  RUN(the_first_epoch_with_memory_makes_it);
  RUN(age_makes_it);
  RUN(large_blocks_make_it_when_they_are_many_or_late);
  RUN(a_large_block_of_an_old_process_makes_it);
  RUN(a_large_block_that_grows_makes_it);
  RUN(many_blocks_make_it_at_once);
  RUN(a_child_of_fork_opens_much_itself);
  RUN(who_asks_for_samples_has_them_from_the_first_block_on);
  RUN(and_from_the_first_block_of_an_epoch_on);
  RUN(an_option_keeps_it_away);
  RUN(a_refusal_is_final_and_harmless);
  RUN(rows_that_come_late_are_taken);
  RUN(what_was_there_is_told);
  RUN(epochs_that_hold_memory_are_told);
  RUN(a_child_of_fork_tells_of_itself);
  return test_status();
}
