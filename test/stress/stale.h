// stale: epochs that are over.
#pragma once

#include <errno.h>
#include <tslab.h>
#include <unistd.h>

#include "../check.h"

enum { STALE_TRIES = 30000 };

// Another thread may just be giving dead pages of the epoch back: it ends when that is done.
static inline void stale_check(tslab_epoch epoch) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  int error = tslab_epoch_get_stats(epoch, &stats);
  for (int i = 0; i < STALE_TRIES && error != ESTALE; i++) {
    usleep(1000);
    error = tslab_epoch_get_stats(epoch, &stats);
  }
  CHECK_THAT(error == ESTALE, "state %d, %zu objects, %zu bytes held, %u threads, %u children",
             (int)stats.state, stats.live_objects, stats.held_bytes, stats.threads, stats.children);
}
