// Rotations: epochs that follow each other by requests or by time.
#include "epochs.h"

static void rotation_requests_test(void) {
  tslab_rotation rotation = TSLAB_ROTATION("turns", .every_requests = 10);
  tslab_epoch ids[5];
  for (int turn = 0; turn < 5; turn++) {
    for (int request = 0; request < 10; request++) {
      tslab_epoch current = tslab_rotation_current(&rotation);
      if (request == 0) ids[turn] = current;
      CHECK_EQ(current, ids[turn]);
      void *block = tslab_epoch_malloc(current, 100);
      CHECK_LANDS(current, block);
      free(block);
    }
    CHECK(turn == 0 || ids[turn] != ids[turn - 1]);
    if (turn >= 1) CHECK_EQ(epoch_stats(ids[turn - 1]).state, TSLAB_OPEN);
    if (turn >= 2) stale_check(ids[turn - 2]);
  }
  CHECK(strcmp(epoch_stats(ids[4]).label, "turns") == 0);
  tslab_rotation_end(&rotation);
  stale_check(ids[3]);
  stale_check(ids[4]);
  CHECK(tslab_rotation_current(&rotation) != ids[4]);
  tslab_rotation_end(&rotation);
}

static void rotation_time_test(void) {
  tslab_epoch_options options = {.size = sizeof options, .hard_limit_bytes = MIB};
  tslab_rotation rotation = TSLAB_ROTATION("time", .options = &options, .every_ms = 30);
  tslab_epoch first = tslab_rotation_current(&rotation);
  CHECK_REFUSED(tslab_epoch_malloc(first, 2 * MIB), ENOMEM);
  usleep(40000);
  tslab_epoch second = tslab_rotation_current(&rotation);
  CHECK(second != first);
  tslab_epoch third = tslab_rotation_advance(&rotation);
  CHECK(third != second);
  stale_check(first);
  CHECK_EQ(epoch_stats(second).state, TSLAB_OPEN);
  tslab_rotation_end(&rotation);
  stale_check(third);
}

int main(void) {
  rotation_requests_test();
  rotation_time_test();
  return 0;
}
