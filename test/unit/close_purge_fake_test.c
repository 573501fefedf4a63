#include "base/options.h"
#include "epochs.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "os_fake.h"

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
  RUN(purging_epochs_purge_at_once);
  RUN(purging_epochs_purge_when_released_after_the_close);
  return test_status();
}
