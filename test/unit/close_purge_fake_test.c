#include "base/options.h"
#include "epochs.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "os_fake.h"
#include "upkeep/tick.h"

enum { BYTES = 100, MIB = 1 << 20 };

// Purge policies, for an epoch of 4 MiB.
static void end_a_large_epoch(enum tslab_purge purge, bool release) {
  tslab_epoch epoch = EPOCHS_OPEN(.purge = purge);
  void *block = epochs_alloc(epoch, 4 * MIB);
  epochs_free(epochs_alloc(epoch, MIB), MIB);
  if (!release) epochs_free(block, 4 * MIB);
  os_fake.purged_bytes = 0;
  CHECK_EQ(release ? tslab_epoch_release(epoch) : tslab_epoch_close(epoch).error, 0);
  CHECK(epochs_is_over(epoch));
}

static void pass_time(void) {
  for (int i = 0; i < 1000; i++) {
    os_fake.now_ms++;
    tslab_free(tslab_malloc(100000));
  }
}

// Closes an epoch of so many blocks of 256 bytes, of which one in so many lives on, and lets a
// tenth of the delay pass. Returns the bytes that went back.
static size_t close_with_survivors(unsigned count, unsigned lives_one_in, enum tslab_purge purge) {
  static void *blocks[4 * MIB / 256];
  tsl_options.purge_delay_ms = 200;
  tslab_epoch epoch = EPOCHS_OPEN(.purge = purge);
  epochs_alloc_many(blocks, epoch, 256, count);
  for (unsigned i = 0; i < count; i++)
    if (i % lives_one_in != 0) epochs_free(blocks[i], 256);
  os_fake.purged_bytes = 0;
  epochs_close(epoch, count / lives_one_in);
  for (int i = 0; i < 20; i++, os_fake.now_ms++) tsl_home_tick(tsl_heap_current->home);
  size_t purged_bytes = os_fake.purged_bytes;
  for (unsigned i = 0; i < count; i += lives_one_in) epochs_free(blocks[i], 256);
  CHECK(epochs_is_over(epoch));
  return purged_bytes;
}

// They would raise the peak before the delay is over.
static void pages_between_few_survivors_wait_for_no_delay(void) {
  os_fake.now_ms = 1000;
  CHECK_GE(close_with_survivors(4 * MIB / 256, 128, TSLAB_PURGE_DECAY), 2 * MIB);
}

static void others_wait(void) {
  os_fake.now_ms = 1000;
  CHECK_EQ(close_with_survivors(MIB / 512, 128, TSLAB_PURGE_DECAY), 0);
  CHECK_EQ(close_with_survivors(4 * MIB / 256, 4, TSLAB_PURGE_DECAY), 0);
  CHECK_EQ(close_with_survivors(4 * MIB / 256, 128, TSLAB_PURGE_KEEP), 0);
}

static void decaying_epochs_purge_later(void) {
  os_fake.now_ms = 1000;
  end_a_large_epoch(TSLAB_PURGE_DECAY, true);
  CHECK_EQ(os_fake.purged_bytes, 0);
  CHECK_GE(tsl_units_dirty(), 5 * MIB / TSL_UNIT_BYTES);
  pass_time();
  CHECK_GE(os_fake.purged_bytes, 4 * MIB);
  CHECK_LE(tsl_units_dirty(), MIB / TSL_UNIT_BYTES);
}

static void keeping_epochs_purge_nothing(void) {
  os_fake.now_ms = 1000;
  end_a_large_epoch(TSLAB_PURGE_KEEP, true);
  pass_time();
  CHECK_GE(tsl_units_dirty(), 4 * MIB / TSL_UNIT_BYTES);
  CHECK_EQ(tslab_trim(0), 1);
  CHECK_EQ(tsl_units_dirty(), 0);
  end_a_large_epoch(TSLAB_PURGE_DECAY, true);
  pass_time();
  CHECK_LE(tsl_units_dirty(), MIB / TSL_UNIT_BYTES);
}

static void purging_epochs_purge_at_once(void) {
  end_a_large_epoch(TSLAB_PURGE_NOW, true);
  CHECK_GE(os_fake.purged_bytes, 4 * MIB);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(state_cached_units(), 0);
  end_a_large_epoch(TSLAB_PURGE_NOW, false);
  CHECK_GE(os_fake.purged_bytes, 4 * MIB);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void purging_epochs_purge_though_nobody_entered_them(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.purge = TSLAB_PURGE_NOW);
  tslab_free(tslab_malloc(4 * MIB));
  CHECK_GE(tsl_units_dirty(), 4 * MIB / TSL_UNIT_BYTES);
  epochs_close(epoch, 0);
  CHECK_GE(os_fake.purged_bytes, 4 * MIB);
  CHECK_EQ(tsl_units_dirty(), 0);
}

static void purging_epochs_purge_when_released_after_the_close(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.purge = TSLAB_PURGE_NOW);
  epochs_alloc(epoch, 4 * MIB);
  epochs_close(epoch, 1);
  CHECK_EQ(os_fake.purged_bytes, 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_GE(os_fake.purged_bytes, 4 * MIB);
  CHECK_EQ(tsl_units_dirty(), 0);
}

int main(void) {
  RUN_UNLESS_SECURE(decaying_epochs_purge_later);
  RUN(keeping_epochs_purge_nothing);
  if (os_fake_page_bytes() == OS_FAKE_LEAST_PAGE_BYTES)
    RUN_UNLESS_SECURE(pages_between_few_survivors_wait_for_no_delay);
  RUN_UNLESS_SECURE(others_wait);
  RUN(purging_epochs_purge_at_once);
  RUN(purging_epochs_purge_though_nobody_entered_them);
  RUN(purging_epochs_purge_when_released_after_the_close);
  return test_status();
}
