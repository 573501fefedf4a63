// cut: a part whose blocks are cut off cells, and a second thread.
#pragma once

#include "blocks.h"
#include "epoch/open.h"
#include "heap/part.h"
#include "state.h"
#include "state/change.h"
#include "state/epoch.h"

static struct tsl_heap *home, *other, *heap;
static uint32_t slot;

// Two threads' home heaps, and the first one's part of an epoch, which is current.
static inline void open_with(tslab_epoch_options options) {
  tslab_epoch id;
  blocks_open((size_t)1 << 28, &home, &other);
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  slot = tsl_epoch_slot(id);
  heap = &tsl_part_take(home->home, slot)->heap;
  CHECK(heap != NULL);
  tsl_heap_current = heap;
}

static inline void open_part(void) { open_with((tslab_epoch_options){0}); }

static inline unsigned class_at(const void *block) { return tsl_class_around(block); }

static inline bool in_cell(const void *block) { return tsl_is_cell(class_at(block)); }

static inline tsl_cell_number cell_of(const void *block) {
  return tsl_cell_of(block, class_at(block));
}

static inline size_t held_bytes(void) { return tsl_epoch_at(slot)->held_bytes; }

// Bytes of the newest cell.
static inline size_t newest_bytes(void) { return heap->cell_end - heap->cell_start; }

// Fills the newest cell to its end with live blocks of 64 bytes; opens the first cell.
static inline void fill_newest(void) {
  if (heap->cell_end == 0) alloc_many(64, 1);
  while (heap->cell_end - heap->cell_next >= 64) alloc_many(64, 1);
}
