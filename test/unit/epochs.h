// epochs: opening epochs and looking at them, as a program does.
#pragma once

#include "memory/units.h"
#include "pattern.h"
#include "state.h"
#include "tslab.h"

// With options: EPOCHS_OPEN(.parent = outer).
#define EPOCHS_OPEN(...) \
  epochs_open_with(&(tslab_epoch_options){.size = sizeof(tslab_epoch_options), __VA_ARGS__})

static inline tslab_epoch epochs_open_with(const tslab_epoch_options *options) {
  tslab_epoch epoch = tslab_epoch_open("test", options);
  CHECK(epoch != TSLAB_NO_EPOCH && epoch != TSLAB_DEFAULT);
  return epoch;
}

static inline tslab_epoch epochs_open(void) { return epochs_open_with(NULL); }

static inline void *epochs_alloc(tslab_epoch epoch, size_t bytes) {
  void *block = tslab_epoch_malloc(epoch, bytes);
  CHECK(block != NULL);
  pattern_write(block, bytes, (unsigned)bytes);
  return block;
}

static inline void epochs_alloc_many(void **blocks, tslab_epoch epoch, size_t bytes,
                                     unsigned count) {
  for (unsigned i = 0; i < count; i++) blocks[i] = epochs_alloc(epoch, bytes);
}

static inline void epochs_free(void *block, size_t bytes) {
  CHECK(block != NULL);
  CHECK(pattern_is(block, bytes, (unsigned)bytes, bytes));
  tslab_free(block);
}

static inline void epochs_free_many(void **blocks, size_t bytes, unsigned count) {
  for (unsigned i = 0; i < count; i++) epochs_free(blocks[i], bytes);
}

static inline tslab_epoch_stats epochs_stats(tslab_epoch epoch) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
  return stats;
}

static inline bool epochs_is_over(tslab_epoch epoch) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  return tslab_epoch_get_stats(epoch, &stats) == ESTALE;
}

static inline void epochs_enter(tslab_scope *scope, tslab_epoch epoch) {
  CHECK_EQ(tslab_scope_enter(scope, epoch), 0);
  CHECK_EQ(tslab_epoch_current(), epoch);
}

static inline void epochs_leave(tslab_scope *scope) { CHECK_EQ(tslab_scope_leave(scope), 0); }

// Closes an epoch in which so many objects live.
static inline tslab_survivors epochs_close(tslab_epoch epoch, size_t objects) {
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, 0);
  CHECK_EQ(left.objects, objects);
  return left;
}

// Nothing lives any more: all memory is free once it is looked for.
static inline void epochs_check_all_free(void) {
  tslab_trim(0);
  state_check();
  CHECK_EQ(tsl_units_free(), tsl_units_open());
}
