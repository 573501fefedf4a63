// seals: one part of an epoch, which some thread seals.
#pragma once

#include "blocks.h"
#include "epoch/open.h"
#include "epoch/seal.h"
#include "heap/hold.h"
#include "state.h"
#include "upkeep/collect.h"

static struct tsl_heap *home, *other, *heap;
static tslab_epoch id;
static uint32_t slot;

static inline void open_homes(void) { blocks_open((size_t)1 << 28, &home, &other); }

// An epoch with one heap, the current one; in cells unless told otherwise.
static inline void open_epoch(size_t first_cell_bytes) {
  heap = blocks_open_part(home, first_cell_bytes, &id);
  slot = tsl_epoch_slot(id);
}

static inline void open_all(size_t first_cell_bytes) {
  open_homes();
  open_epoch(first_cell_bytes);
}

// Ends the epoch, whose only heap is not sealed yet.
static inline void end_epoch(enum tsl_epoch_state state) {
  tsl_heap_current = home;
  CHECK_EQ(tsl_epoch_end(id, state), 0);
  tsl_add_relaxed(&tsl_epoch_at(slot)->undrained, 1);
  tsl_epoch_drain(slot, 1);
  state_check_undrained(slot);
}

// Seals the only heap as thread `sealer`.
static inline struct tsl_survivors seal_as(struct tsl_heap *sealer) {
  struct tsl_survivors survivors = {0};
  end_epoch(TSL_EPOCH_CLOSED);
  tsl_heap_current = sealer;
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  tsl_part_seal(tsl_part_of(heap), &survivors);
  CHECK_EQ(sealer->home->changing, 0);
  tsl_heap_current = home;
  state_check();
  if (tsl_epoch_find(id) != NULL) state_check_undrained(slot);
  return survivors;
}

static inline void check_survivors(struct tsl_survivors left, size_t objects, size_t bytes,
                                   size_t pages) {
  CHECK_EQ(left.objects, objects);
  CHECK_EQ(left.bytes, bytes);
  CHECK_EQ(left.pages, pages);
}

// Everything is over: the epoch has retired, and its memory is free.
static inline void check_over(void) {
  CHECK_EQ(tsl_epoch_check(id), ESTALE);
  CHECK_EQ(tsl_epoch_at(slot)->held_bytes, 0);
  CHECK_EQ(tsl_epoch_at(slot)->undrained, 0);
  state_check();
  tsl_home_collect(home->home);
  act_as(other, tsl_home_collect);
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}
