// The epoch that those of a label share.
#ifndef BENCH_SHARED_EPOCH_H
#define BENCH_SHARED_EPOCH_H

#include "common/epochs.h"

// Objects in the shared epoch of a label, of which no close tells.
static inline size_t shared_epoch_live(const char *label) {
  tslab_epoch_options shares = {.size = sizeof shares, .place = TSLAB_PLACE_SHARED};
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch epoch = epochs_open(label, &shares);
  epochs_check(tslab_epoch_get_stats(epoch, &stats));
  epochs_check(tslab_epoch_get_stats(stats.place, &stats));
  epochs_close(epoch);
  return stats.live_objects;
}

#endif
