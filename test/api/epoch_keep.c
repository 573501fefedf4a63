// Blocks that the end of their epoch spares.
#include "epochs.h"

// Whatever called malloc: the release spares what was kept, to the last byte.
static void keep_test(void) {
  static const size_t sizes[] = {0, 16, 100, 1000, 5000, 30000, 300 * KIB};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  for (int by_close = 0; by_close < 2; by_close++) {
    tslab_epoch epoch = epoch_open(NULL);
    tslab_scope scope;
    char *kept[SIZES];
    scope_enter(&scope, epoch);
    for (int i = 0; i < SIZES; i++) {
      kept[i] = memset(malloc(sizes[i]), i, sizes[i]);
      CHECK(malloc(sizes[i]) != NULL);
      CHECK_EQ(tslab_epoch_keep(kept[i]), 0);
    }
    scope_leave(&scope, TSLAB_DEFAULT);
    if (by_close) CHECK_EQ(tslab_epoch_close(epoch).objects, 2 * SIZES);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(epoch_stats(epoch).live_objects, SIZES);
    CHECK_EQ(epoch_stats(epoch).state, TSLAB_RELEASED);
    for (int i = 0; i < SIZES; i++) {
      CHECK_LANDS(epoch, kept[i]);
      for (size_t at = 0; at < sizes[i]; at++) CHECK_EQ(kept[i][at], i);
      free(kept[i]);
    }
    stale_check(epoch);
  }
}

static void keep_in_default_test(void) {
  char *block = malloc(100);
  CHECK_EQ(tslab_epoch_keep(block), 0);
  CHECK_EQ(tslab_epoch_keep(block + 1), EFAULT);
  CHECK_EQ(tslab_epoch_keep(NULL), EFAULT);
  free(block);
}

int main(void) {
  keep_test();
  keep_in_default_test();
  return 0;
}
