#include "state/tally.h"

#include "base/options.h"
#include "epochs.h"
#include "heap/part.h"
#include "heap/remote.h"
#include "heap/rest.h"
#include "homes.h"
#include "state/bin.h"
#include "takes.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum { COUNT = 1000, FEW = 500 };

static struct tsl_heap *mine, *other;

static void *live[COUNT];
static unsigned live_count;

static void open_homes(void) { homes_open((size_t)1 << 28, &mine, &other); }

static void alloc_many(size_t bytes, unsigned count) {
  live_count = 0;
  for (; live_count < count; live_count++) {
    live[live_count] = tsl_fast_malloc(bytes);
    CHECK(live[live_count] != NULL);
  }
}

static void free_last(unsigned count) {
  for (; count != 0; count--) tsl_fast_free(live[--live_count]);
}

static const struct tsl_tally *tally_of(const struct tsl_heap *home, size_t bytes) {
  return &home->store->tallies[takes_class(bytes)];
}

static uint64_t allocations(const struct tsl_heap *heap, size_t bytes) {
  unsigned class = takes_class(bytes);
  uint64_t at_hand =
      tsl_bin_ahead(&heap->bins[class]) + tsl_stock_blocks(&heap->store->stocks[class]);
  return heap->store->allocations[class] - at_hand;
}

static void every_word_that_is_taken_counts(void) {
  open_homes();
  alloc_many(64, COUNT);
  const struct tsl_tally *tally = tally_of(mine, 64);
  unsigned at_hand = tsl_stock_blocks(&mine->store->stocks[takes_class(64)]);
  CHECK_EQ(tally->refilled, COUNT + at_hand);
  CHECK_EQ(tally->refills, (COUNT + 63) / 64);
  CHECK_EQ(tally->opened, 1);
  CHECK_EQ(tsl_tally_returned(tally), 0);
}

static void what_a_full_bin_does_not_take_is_returned(void) {
  open_homes();
  alloc_many(32000, COUNT);
  const struct tsl_tally *tally = tally_of(mine, 32000);
  uint64_t before = tally->refilled;
  free_last(COUNT);
  CHECK_EQ(tally->refilled, before);
  size_t hot = tsl_heap_hot_blocks(mine, takes_class(32000));
  CHECK_EQ(tsl_tally_returned(tally) + tally->rested + hot, tally->refilled);
  CHECK_GE(tsl_tally_returned(tally), COUNT - 64);
}

// A class that comes to rest returns nothing: nobody freed what it puts back.
static void rest_is_not_a_return(void) {
  open_homes();
  alloc_many(64, COUNT);
  free_last(100);
  tsl_home_rest_all(mine->home);
  CHECK_EQ(tsl_heap_hot_blocks(mine, takes_class(64)), 0);
  CHECK_EQ(tsl_tally_returned(tally_of(mine, 64)), 0);
}

// A sample ends its handful early; nobody freed what goes back.
static void what_a_sample_puts_back_is_not_returned(void) {
  tsl_options.sample_bytes = 16384;
  open_homes();
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  tsl_home_follow_samples(mine->home);
  alloc_many(64, COUNT);
  CHECK_GE(tally_of(mine, 64)->refills, (COUNT + 63) / 64 + 1);
  CHECK_EQ(tsl_tally_returned(tally_of(mine, 64)), 0);
}

// Those are told as taken.
static void what_others_free_is_not_returned(void) {
  open_homes();
  alloc_many(64, COUNT);
  tsl_heap_current = other;
  free_last(COUNT);
  tsl_remote_send_all(other->home);
  tsl_heap_current = mine;
  tsl_heap_look_at_ready(mine, UINT32_MAX);
  CHECK_GE(tally_of(mine, 64)->taken, COUNT - 100);
  CHECK_EQ(tsl_tally_returned(tally_of(mine, 64)), 0);
  CHECK_EQ(tally_of(other, 64)->sent, COUNT);
}

// An epoch of `mine` in which blocks were allocated, freed, and left; who ends it counts them.
static void use_an_epoch(size_t first_cell_bytes, struct tsl_heap *ender) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  alloc_many(48, COUNT);
  free_last(COUNT / 2);
  epochs_leave(&scope);
  tsl_heap_current = ender;
  epochs_close(epoch, COUNT / 2);
  tsl_heap_current = mine;
}

static void parts_leave_what_they_counted_in_cells(void) {
  open_homes();
  use_an_epoch(0, mine);
  CHECK_EQ(mine->home->own->cells.ended_objects, COUNT);
  CHECK_EQ(mine->home->own->cells.ended_granules, COUNT * 3);
  CHECK_EQ(mine->home->own->cells.taken, 2);
  use_an_epoch(0, other);
  CHECK_EQ(mine->home->own->cells.ended_objects, COUNT);
  CHECK_EQ(other->home->own->cells.ended_objects, COUNT);
}

static void parts_leave_what_they_counted_in_slabs(void) {
  open_homes();
  uint32_t seen = mine->home->heap.store->rest.totals[takes_class(48)];
  use_an_epoch(TSLAB_NO_CELLS, mine);
  CHECK_EQ(allocations(mine, 48), COUNT);
  CHECK_EQ(mine->home->heap.store->rest.totals[takes_class(48)] - seen, COUNT);
  CHECK_EQ(tally_of(mine, 48)->opened, 1);
  CHECK_EQ(tally_of(mine, 48)->refills, (COUNT + 63) / 64);
  CHECK_EQ(tsl_tally_out(tally_of(mine, 48)), 0);
  CHECK_EQ(tsl_tally_returned(tally_of(mine, 48)), 0);
  use_an_epoch(TSLAB_NO_CELLS, other);
  CHECK_EQ(allocations(mine, 48), COUNT);
  CHECK_EQ(allocations(other, 48), COUNT);
}

// In the child of a fork, before its thread has a heap.
static void without_a_home_the_parts_own_one_counts(void) {
  open_homes();
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  struct tsl_heap *part = &tsl_part_take(mine->home, tsl_epoch_slot(epoch))->heap;
  tsl_heap_current = part;
  alloc_many(48, COUNT);
  tsl_heap_lay_down(part);
  tsl_heap_current = &tsl_home_empty.heap;
  tsl_part_end_tallies(tsl_part_of(part));
  CHECK_EQ(allocations(mine, 48), COUNT);
}

static void an_empty_cell_that_is_cut_anew_counts(void) {
  open_homes();
  tslab_scope scope;
  epochs_enter(&scope, epochs_open());
  for (unsigned i = 0; i < FEW; i++) {
    void *block = tsl_fast_malloc(400), *last = tsl_fast_malloc(16);
    tsl_fast_free(block);
    tsl_fast_free(last);
  }
  epochs_leave(&scope);
  CHECK_EQ(mine->home->own->cells.taken, 1);
  CHECK_GE(mine->home->own->cells.restarted, FEW / 20);
}

static void heirs_tell_at_once(void) {
  open_homes();
  tsl_report_start();
  use_an_epoch(0, other);
  use_an_epoch(TSLAB_NO_CELLS, other);
  const struct tsl_bins_row *row = TSL_ROW(bins, other->number);
  CHECK_EQ(row->ended_objects + row->allocations[takes_class(48)], 2 * COUNT);
  CHECK_EQ(row->ended_bytes, other->home->own->cells.ended_granules * 16);
  CHECK_GE(row->refills[takes_class(48)], 1);
  CHECK_EQ(((struct tsl_heaps_row *)TSL_ROW(heaps, other->number))->state, 1);
  tsl_report_heap(mine);
  row = TSL_ROW(bins, mine->number);
  CHECK_EQ(row->cells_taken, mine->home->own->cells.taken);
  CHECK_EQ(row->cells_restarted, mine->home->own->cells.restarted);
}

// Closes, and releases with those of children: each once, refused ones not.
static void ends_of_epochs_are_counted(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_end_tally *ends = &mine->home->own->ends;
  tslab_epoch parent = epochs_open(), closed = EPOCHS_OPEN(.parent = parent);
  tslab_epoch shares = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  epochs_alloc(closed, 100);
  CHECK_EQ(tslab_epoch_close(closed).error, 0);
  CHECK_NE(tslab_epoch_close(closed).error, 0);
  CHECK_EQ(tslab_epoch_close(shares).error, 0);
  CHECK_EQ(ends->closes, 2);
  CHECK_EQ(ends->releases, 0);
  CHECK_EQ(tslab_epoch_release(parent), 0);
  CHECK_NE(tslab_epoch_release(parent), 0);
  CHECK_EQ(ends->closes, 2);
  CHECK_EQ(ends->releases, 2);
  CHECK_EQ(other->home->own->ends.closes + other->home->own->ends.releases, 0);
}

static void ends_and_units_are_told(void) {
  open_homes();
  tsl_report_start();
  use_an_epoch(TSLAB_NO_CELLS, other);
  const struct tsl_end_tally *ends = &other->home->own->ends;
  const struct tsl_bins_row *row = TSL_ROW(bins, other->number);
  CHECK_EQ(row->closes, 1);
  CHECK_EQ(row->releases, 0);
  CHECK_EQ(row->end_parts, 1);
  CHECK_EQ(row->end_pieces, ends->pieces);
  CHECK_EQ(row->end_pieces_given, ends->pieces_given);
  CHECK_EQ(row->end_bytes, ends->held_pages * 4096);
  CHECK_EQ(row->end_bytes_given, ends->given_pages * 4096);
  CHECK_EQ(row->end_timed_parts + row->end_timed_ns, 0);
  tsl_report_heap(mine);
  row = TSL_ROW(bins, mine->number);
  const struct tsl_unit_tally *taken = &mine->home->own->taken;
  CHECK_GE(taken->fresh, 1);
  CHECK_EQ(row->units_fresh, taken->fresh);
  CHECK_EQ(row->units_reused, taken->reused);
  CHECK_EQ(row->units_shared, taken->shared);
  CHECK_EQ(row->units_kept, taken->kept);
}

static void more_blocks_than_were_taken_are_no_return(void) {
  struct tsl_tally tally = tsl_tally_new(takes_class(64));
  tally.refilled = 10;
  tally.rested = 8;
  CHECK_EQ(tsl_tally_returned(&tally), 2);
  tally.rested = 11;
  CHECK_EQ(tsl_tally_returned(&tally), 0);
}

static void frees_that_were_told_of_are_still_free(void) {
  unsigned class = takes_class(64);
  struct tsl_tally tally = tsl_tally_new(class);
  tally.out += 20;
  for (int i = 0; i < 5; i++) tally.untold--;
  CHECK_EQ(tsl_tally_out(&tally), 15);
  tsl_tally_tell(&tally, class);
  CHECK_EQ(tsl_tally_out(&tally), 15);
  CHECK_EQ(tally.untold, tsl_tally_most_untold[class]);
}

// What waits in the quarantine of the hardened build was freed, too.
static void who_ends_a_part_knows_what_was_freed(void) {
  open_homes();
  use_an_epoch(TSLAB_NO_CELLS, other);
  CHECK_EQ(tsl_tally_returned(tally_of(other, 48)), TSL_SECURE ? COUNT / 2 : 0);
  CHECK_EQ(mine->home->changing + other->home->changing, 0);
}

int main(void) {
  RUN(more_blocks_than_were_taken_are_no_return);
  RUN(frees_that_were_told_of_are_still_free);
  RUN(who_ends_a_part_knows_what_was_freed);
  RUN_UNLESS_SECURE(every_word_that_is_taken_counts);
  RUN(what_a_full_bin_does_not_take_is_returned);
  RUN(what_others_free_is_not_returned);
  RUN_UNLESS_SECURE(parts_leave_what_they_counted_in_cells);
  RUN_UNLESS_SECURE(rest_is_not_a_return);
  RUN_UNLESS_SECURE(what_a_sample_puts_back_is_not_returned);
  RUN_UNLESS_SECURE(parts_leave_what_they_counted_in_slabs);
  RUN(without_a_home_the_parts_own_one_counts);
  RUN_UNLESS_SECURE(an_empty_cell_that_is_cut_anew_counts);
  RUN(heirs_tell_at_once);
  RUN(ends_of_epochs_are_counted);
  RUN(ends_and_units_are_told);
  return test_status();
}
