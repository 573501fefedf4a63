// told: what a reader of the statistics file makes of its rows.
#pragma once

#include "state/epoch.h"
#include "state/heap.h"
#include "tell/rows.h"
#include "test.h"

struct told {
  uint64_t objects, bytes;
};

static inline void told_add(struct told *told, unsigned class, uint64_t objects) {
  told->objects += objects;
  told->bytes += objects * tsl_sizeclasses[class].bytes;
}

static inline uint64_t told_in_bin(uint32_t number, unsigned class) {
  const struct tsl_bins_row *row = TSL_ROW(bins, number);
  return (uint64_t)row->out[class] - row->hot[class] + row->taken[class];
}

static inline void told_add_part(struct told *told, uint32_t number) {
  const struct tsl_heaps_row *row = TSL_ROW(heaps, number);
  told->objects += row->cut_objects - row->freed_objects - row->away_objects;
  told->bytes += row->cut_bytes - row->freed_bytes - row->away_bytes;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    told_add(told, class, told_in_bin(number, class));
}

// Of an epoch other than the default one.
static inline struct told told_of_epoch(uint32_t slot) {
  const struct tsl_epochs_row *row = TSL_ROW(epochs, slot);
  struct told told = {row->large_objects, row->large_bytes};
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    told_add(&told, class, row->survivors[class]);
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    const struct tsl_heaps_row *heap = TSL_ROW(heaps, number);
    if (heap->state != 0 && heap->home != number && heap->epoch == slot)
      told_add_part(&told, number);
  }
  return told;
}

// Of a class in the default epoch.
static inline uint64_t told_of_class(unsigned class) {
  uint64_t live = 0 - ((struct tsl_bins_row *)TSL_ROW(bins, 0))->sent[class];
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    const struct tsl_heaps_row *heap = TSL_ROW(heaps, number);
    if (heap->state == 0 || heap->home != number) continue;
    live +=
        told_in_bin(number, class) - ((struct tsl_bins_row *)TSL_ROW(bins, number))->sent[class];
  }
  return live;
}

// All allocations of the process so far, of large blocks, too.
static inline uint64_t told_allocations(void) {
  uint64_t sum = ((struct tsl_process_row *)TSL_ROW(process, 0))->large_allocations;
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    const struct tsl_heaps_row *heap = TSL_ROW(heaps, number);
    if (heap->state == 0) continue;
    const struct tsl_bins_row *bins = TSL_ROW(bins, number);
    sum += heap->cut_objects + bins->ended_objects;
    for (unsigned class = 0; class < TSL_CLASSES; class += 1) sum += bins->allocations[class];
  }
  return sum;
}

static inline void check_told(tslab_epoch epoch, uint64_t objects, uint64_t bytes) {
  struct told told = told_of_epoch(tsl_epoch_slot(epoch));
  CHECK_EQ(told.objects, objects);
  CHECK_EQ(told.bytes, bytes);
}
