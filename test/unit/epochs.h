// epochs: opening epochs and looking at them, as a program does.
#pragma once

#include "memory/units.h"
#include "pattern.h"
#include "state.h"
#include "tslab.h"

// With options: EPOCHS_OPEN(.parent = outer).
#define EPOCHS_OPEN(...) \
  epochs_open_with(&(tslab_epoch_options){.size = sizeof(tslab_epoch_options), __VA_ARGS__})

// Where the options do not say, it has memory of its own, however many there were before.
static inline tslab_epoch epochs_open_with(const tslab_epoch_options *options) {
  tslab_epoch_options own = {.size = sizeof own};
  if (options != NULL) own = *options;
  if (own.place == TSLAB_PLACE_AUTO) own.place = TSLAB_PLACE_OWN;
  tslab_epoch epoch = tslab_epoch_open("test", &own);
  CHECK(epoch != TSLAB_NO_EPOCH && epoch != TSLAB_DEFAULT);
  return epoch;
}

static inline tslab_epoch epochs_open(void) { return epochs_open_with(NULL); }

// A thread that leaves a scope each 10 ms tells of each (scope.c).
static inline void epochs_pass_time(void) {
  struct tsl_home *home = tsl_heap_current->home;
  for (uint32_t number = home->family; number != 0; number = tsl_part_at(number)->family_next) {
    tsl_part_at(number)->left_ms -= 10;
    tsl_part_at(number)->freed_ms -= 10;
  }
}

static inline void *epochs_alloc(tslab_epoch epoch, size_t bytes) {
  epochs_pass_time();
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

static inline void epochs_check_live(tslab_epoch epoch, size_t objects, size_t bytes) {
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.live_objects, objects);
  CHECK_EQ(stats.live_bytes, bytes);
}

// A new epoch with blocks in each kind of memory.
static inline tslab_epoch epochs_fill(void **blocks, size_t first_cell_bytes, unsigned count) {
  static const size_t sizes[] = {0, 24, 100, 1000, 5000, 9000, 30000, 100000};
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  for (unsigned i = 0; i < count; i++) blocks[i] = epochs_alloc(epoch, sizes[i % 8]);
  return epoch;
}

static inline bool epochs_is_over(tslab_epoch epoch) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  return tslab_epoch_get_stats(epoch, &stats) == ESTALE;
}

static inline void epochs_enter(tslab_scope *scope, tslab_epoch epoch) {
  CHECK_EQ(tslab_scope_enter(scope, epoch), 0);
  CHECK_EQ(tslab_epoch_current(), epoch);
}

static inline void epochs_leave(tslab_scope *scope) {
  epochs_pass_time();
  CHECK_EQ(tslab_scope_leave(scope), 0);
}

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
