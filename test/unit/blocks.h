// blocks: small blocks as the heaps of two threads hand them out, without a thread of their own.
#pragma once

#include "alloc/malloc.h"
#include "base/options.h"
#include "capture.h"
#include "epoch/open.h"
#include "heap/freed.h"
#include "heap/part.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "homes.h"
#include "state/bin.h"
#include "state/owner.h"
#include "state/quarantine.h"

enum { BLOCKS_MOST = 1 << 16 };

static void *blocks[BLOCKS_MOST];
static unsigned block_count;

// The home heaps of two threads; the first one is current.
static inline void blocks_open(size_t limit_bytes, struct tsl_heap **first,
                               struct tsl_heap **second) {
  homes_open(limit_bytes, first, second);
}

// Counts them one by one.
static inline unsigned blocks_on_bin(const struct tsl_heap *heap, unsigned class) {
  unsigned length = 0;
  for (struct tsl_free_block *at = heap->bins[class].head; at != &tsl_bin_end; length++) {
    at = (struct tsl_free_block *)(at->link ^ (uintptr_t)at);
  }
  return length;
}

// A new epoch of `home`'s thread, whose part of it is current; in cells unless told otherwise.
static inline struct tsl_heap *blocks_open_part(struct tsl_heap *home, size_t first_cell_bytes,
                                                tslab_epoch *id) {
  tslab_epoch_options options = {.first_cell_bytes = first_cell_bytes};
  CHECK_EQ(tsl_epoch_open(0, &options, id), 0);
  struct tsl_part *taken = tsl_part_take(home->home, tsl_epoch_slot(*id));
  CHECK(taken != NULL);
  struct tsl_heap *part = &taken->heap;
  tsl_heap_current = part;
  block_count = 0;
  return part;
}

// A part of `home` in an epoch that was just opened, and not made current. It has slabs, as
// every build allows.
static inline struct tsl_heap *blocks_take_part(struct tsl_heap *home) {
  tslab_epoch id;
  tslab_epoch_options options = {.first_cell_bytes = TSLAB_NO_CELLS};
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  tsl_owner_act_for(home->home);
  struct tsl_heap *part = &tsl_part_take(home->home, tsl_epoch_slot(id))->heap;
  tsl_owner_act_for(NULL);
  CHECK(part != NULL);
  CHECK(&part->home->heap == home);
  CHECK_EQ(part->epoch, tsl_epoch_slot(id));
  CHECK_EQ(tsl_part_of(part)->sealing, 0);
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

// In the order in which they came.
static inline void free_in_order(void) {
  for (unsigned i = 0; i < block_count; i++) tsl_fast_free(blocks[i]);
  block_count = 0;
}

// As the thread of that heap would.
static inline void free_as(struct tsl_heap *freer, void *block) {
  struct tsl_heap *before = tsl_heap_current;
  tsl_heap_current = freer;
  tsl_fast_free(block);
  tsl_heap_current = before;
}

// Everything of a part that is free goes back, as its seal would have it.
static inline void blocks_collect_part(struct tsl_heap *part) {
  for (void *block; (block = tsl_quarantine_take(part)) != NULL;)
    tsl_heap_end_quarantine(part, block);
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    for (void *block; (block = tsl_bin_pop(part, class)) != NULL;)
      tsl_heap_put_plainly(part, class, block);
    tsl_heap_drain_stock(part, class);
  }
  tsl_heap_look_at_ready(part, UINT32_MAX);
  if (TSL_SECURE) tsl_heap_close_empty(part);
}

// As a thread would that has claimed the home.
static inline void act_as(struct tsl_heap *claimed, void (*act)(struct tsl_home *)) {
  tsl_owner_act_for(claimed->home);
  act(claimed->home);
  tsl_owner_act_for(NULL);
}

// All of them, as the thread of that heap would.
static inline void free_many_as(struct tsl_heap *freer) {
  struct tsl_heap *before = tsl_heap_current;
  tsl_heap_current = freer;
  free_many();
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
