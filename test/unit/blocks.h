// blocks: small blocks as the heaps of two threads hand them out, without a thread of their own.
#pragma once

#include "alloc/malloc.h"
#include "base/options.h"
#include "capture.h"
#include "homes.h"

enum { BLOCKS_MOST = 1 << 16 };

static void *blocks[BLOCKS_MOST];
static unsigned block_count;

// The home heaps of two threads; the first one is current.
static inline void blocks_open(size_t limit_bytes, struct tsl_heap **first,
                               struct tsl_heap **second) {
  homes_open(limit_bytes, first, second);
}

// A new epoch of `home`'s thread, whose part of it is current; in cells unless told otherwise.
static inline struct tsl_heap *blocks_open_part(struct tsl_heap *home, size_t first_cell_bytes,
                                                tslab_epoch *id) {
  tslab_epoch_options options = {.first_cell_bytes = first_cell_bytes};
  CHECK_EQ(tsl_epoch_open(0, &options, id), 0);
  struct tsl_heap *part = tsl_heap_take_part(home, tsl_epoch_slot(*id));
  CHECK(part != NULL);
  tsl_heap_current = part;
  block_count = 0;
  return part;
}

static inline void *alloc(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  memset(block, 0xa5, bytes);
  return block;
}

static inline void alloc_many(size_t bytes, unsigned count) {
  for (unsigned i = 0; i < count; i++) blocks[block_count++] = alloc(bytes);
}

static inline void free_many(void) {
  while (block_count != 0) tsl_fast_free(blocks[--block_count]);
}

// As the thread of that heap would.
static inline void free_as(struct tsl_heap *freer, void *block) {
  struct tsl_heap *before = tsl_heap_current;
  tsl_heap_current = freer;
  tsl_fast_free(block);
  tsl_heap_current = before;
}

// What the free of a block that is none says.
static inline const char *blocks_free_and_hear(void *block) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  tsl_fast_free(block);
  return capture_end();
}

static inline bool blocks_is_reported(void *block, const char *what) {
  const char *said = blocks_free_and_hear(block);
  return capture_lines(said) == 1 && strstr(said, what) != NULL;
}
