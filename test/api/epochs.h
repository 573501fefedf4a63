// epochs: what the programs about epochs share.
#ifndef TSLAB_TEST_EPOCHS_H
#define TSLAB_TEST_EPOCHS_H

#include <pthread.h>
#include <tslab.h>

#include "blocks.h"

#define CHECK_LANDS(epoch, block)                                                             \
  do {                                                                                        \
    const void *lands_block = (block);                                                        \
    CHECK(lands_block != NULL);                                                               \
    CHECK_THAT(tslab_epoch_of(lands_block) == (epoch), "%p lies in epoch 0x%llx, not 0x%llx", \
               lands_block, (unsigned long long)tslab_epoch_of(lands_block),                  \
               (unsigned long long)(epoch));                                                  \
  } while (0)

// With options, or with memory of its own.
static inline tslab_epoch epoch_open(const tslab_epoch_options *options) {
  static const tslab_epoch_options own = {.size = sizeof own, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open("test", options == NULL ? &own : options);
  CHECK_THAT(epoch != TSLAB_NO_EPOCH, "errno %d", errno);
  return epoch;
}

static inline tslab_epoch epoch_open_child(tslab_epoch parent) {
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  return epoch_open(&options);
}

static inline tslab_epoch_stats epoch_stats(tslab_epoch epoch) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
  return stats;
}

static inline void scope_enter(tslab_scope *scope, tslab_epoch epoch) {
  CHECK_EQ(tslab_scope_enter(scope, epoch), 0);
  CHECK_EQ(tslab_epoch_current(), epoch);
  CHECK_EQ(scope->epoch, epoch);
}

static inline void scope_leave(tslab_scope *scope, tslab_epoch back_in) {
  CHECK_EQ(tslab_scope_leave(scope), 0);
  CHECK_EQ(tslab_epoch_current(), back_in);
}

static inline void nothing_run(void *argument) { (void)argument; }

// Everybody refuses an id of an epoch that is over, or never was.
static inline void stale_check(tslab_epoch epoch) {
  tslab_scope scope;
  tslab_epoch before = tslab_epoch_current();
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch_options options = {.size = sizeof options, .parent = epoch};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), ESTALE);
  CHECK_EQ(tslab_epoch_close(epoch).error, ESTALE);
  CHECK_EQ(tslab_epoch_release(epoch), ESTALE);
  CHECK_EQ(tslab_epoch_defer(epoch, nothing_run, NULL), ESTALE);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), ESTALE);
  CHECK_EQ(tslab_epoch_advise(epoch, TSLAB_ADVISE_COLD), ESTALE);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 10), ESTALE);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, 10, 10), ESTALE);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, 10), ESTALE);
  CHECK_REFUSED(tslab_epoch_realloc(epoch, NULL, 10), ESTALE);
  CHECK_REFUSED(tslab_handle_alloc(epoch, 10).block, ESTALE);
  errno = 0;
  CHECK_EQ(tslab_epoch_open("test", &options), TSLAB_NO_EPOCH);
  CHECK_EQ(errno, ESTALE);
  CHECK_EQ(tslab_epoch_current(), before);
}

// A closed epoch in which objects live on takes no more.
static inline void closed_check(tslab_epoch epoch) {
  tslab_scope scope;
  tslab_epoch_options options = {.size = sizeof options, .parent = epoch};
  CHECK_EQ(epoch_stats(epoch).state, TSLAB_CLOSED);
  CHECK_EQ(tslab_epoch_close(epoch).error, ECANCELED);
  CHECK_EQ(tslab_epoch_defer(epoch, nothing_run, NULL), ECANCELED);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), ECANCELED);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 10), ECANCELED);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, 10, 10), ECANCELED);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, 10), ECANCELED);
  CHECK_REFUSED(tslab_epoch_realloc(epoch, NULL, 10), ECANCELED);
  CHECK_REFUSED(tslab_handle_alloc(epoch, 10).block, ECANCELED);
  errno = 0;
  CHECK_EQ(tslab_epoch_open("test", &options), TSLAB_NO_EPOCH);
  CHECK_EQ(errno, ECANCELED);
}

static inline void free_all(void **blocks, int count) {
  for (int i = 0; i < count; i++) free(blocks[i]);
}

static inline void *thread_free_run(void *block) {
  free(block);
  return NULL;
}

static inline void thread_run(void *(*function)(void *), void *data) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, function, data), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

#endif
