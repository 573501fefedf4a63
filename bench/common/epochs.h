// Epochs for programs that also run on peers: the functions are found at run time, and no byte of
// tslab stands in the process of a peer. They exist where libtslab-preload.so is preloaded.
#ifndef BENCH_EPOCHS_H
#define BENCH_EPOCHS_H

#include <stdio.h>
#include <stdlib.h>
#include <tslab.h>

#pragma weak tslab_epoch_aligned_alloc
#pragma weak tslab_epoch_close
#pragma weak tslab_epoch_get_stats
#pragma weak tslab_epoch_malloc
#pragma weak tslab_epoch_open
#pragma weak tslab_epoch_release
#pragma weak tslab_error_text
#pragma weak tslab_free
#pragma weak tslab_handle_alloc
#pragma weak tslab_handle_free
#pragma weak tslab_handle_get
#pragma weak tslab_option_set
#pragma weak tslab_scope_enter
#pragma weak tslab_scope_leave

// Ends the program where the allocator under test has no epochs.
static inline void epochs_demand(void) {
  if (tslab_epoch_open == NULL) {
    fputs("needs epochs: run it with libtslab-preload.so in LD_PRELOAD\n", stderr);
    exit(1);
  }
}

static inline void epochs_check(int error) {
  if (error != 0) {
    fprintf(stderr, "an epoch refuses: error %d\n", error);
    exit(1);
  }
}

static inline tslab_epoch epochs_open(const char *label, const tslab_epoch_options *options) {
  tslab_epoch epoch = tslab_epoch_open(label, options);
  if (epoch == TSLAB_NO_EPOCH) {
    fputs("an epoch cannot be opened\n", stderr);
    exit(1);
  }
  return epoch;
}

static inline tslab_survivors epochs_close(tslab_epoch epoch) {
  tslab_survivors left = tslab_epoch_close(epoch);
  epochs_check(left.error);
  return left;
}

#endif
