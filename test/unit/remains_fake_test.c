#include "upkeep/remains.h"

#include "blocks.h"
#include "memory/purge.h"
#include "state.h"
#include "takes.h"
#include "upkeep/collect.h"
#include "upkeep/reports.h"

enum { DELAY_MS = 100, KIB = 1 << 10, CELL_BYTES = 64 * KIB };

static struct tsl_heap *home, *other, *heap;
static tslab_epoch id;
static uint32_t slot;

static void open_epoch(size_t first_cell_bytes) {
  heap = blocks_open_part(home, first_cell_bytes, &id);
  slot = tsl_epoch_slot(id);
}

static void open_all(size_t first_cell_bytes) {
  tsl_options.purge_delay_ms = DELAY_MS;
  os_fake.now_ms = 1000;
  blocks_open((size_t)1 << 28, &home, &other);
  open_epoch(first_cell_bytes);
}

static void close_epoch(void) {
  struct tsl_survivors survivors = {0};
  tsl_heap_current = home;
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_CLOSED), 0);
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  tsl_part_seal(tsl_part_of(heap), &survivors);
}

static void steps(unsigned ms) {
  for (unsigned i = 0; i < ms; i++) {
    os_fake.now_ms++;
    tsl_remains_step(1);
  }
  state_check();
}

// All blocks but each `keep`th end.
static void free_but(unsigned keep) {
  for (unsigned i = 0; i < block_count; i++) {
    if (i % keep != 0) free_as(heap, blocks[i]);
    if (i % keep != 0) blocks[i] = NULL;
  }
}

static void check_kept(size_t bytes) {
  for (unsigned i = 0; i < block_count; i++) {
    const unsigned char *block = blocks[i];
    for (size_t b = 0; block != NULL && b < bytes; b++) CHECK_EQ(block[b], 0xa5);
  }
}

// What is left ends, and nothing remains of the epoch.
static void end_rest(void) {
  for (unsigned i = 0; i < block_count; i++) {
    if (blocks[i] != NULL) free_as(i % 2 == 0 ? home : other, blocks[i]);
  }
  state_check();
  CHECK_EQ(tsl_epoch_at(slot)->held_bytes, 0);
  tsl_home_collect(home->home);
  act_as(other, tsl_home_collect);
  CHECK_EQ(state_owned_units(), 0);
}

// The first cell is a page, the next two have room for 1,024 blocks each: of the 16 pages of the
// one 14 are dead, of the other 15.
static void fill_three_cells(void) {
  open_all(0);
  alloc_many(64, 64 + 1024 + 1024);
  for (unsigned i = 0; i < block_count; i++) {
    if (i == 7 || i == 100 || i == 900 || i == 2000) continue;
    free_as(heap, blocks[i]);
    blocks[i] = NULL;
  }
}

// A look at this unit would fault: its map entry is not there.
static void without_survivors_no_unit_is_looked_at(void) {
  open_all(0);
  size_t first = tsl_region.first_unit, units = tsl_region.units;
  tsl_region.first_unit = UINT32_MAX - 1;
  tsl_region.units = UINT32_MAX;
  for (unsigned i = 0; i < 10; i++, os_fake.now_ms++) tsl_remains_step(1);
  tsl_region.first_unit = first;
  tsl_region.units = units;
}

static void dead_pages_of_cells_go_back(void) {
  fill_three_cells();
  close_epoch();
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, (14 + 15) * 4 * KIB);
  CHECK_EQ(tsl_counts.purges, os_fake.calls[OS_FAKE_PURGE]);
  check_kept(64);
  end_rest();
}

static void dead_pages_of_slabs_go_back(void) {
  open_all(TSLAB_NO_CELLS);
  tsl_report_start();
  alloc_many(512, 4 * 128);
  free_but(128);
  close_epoch();
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 4 * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  const struct tsl_classes_row *row = TSL_ROW(classes, takes_class(512));
  CHECK_EQ(row->purged_bytes, os_fake.purged_bytes);
  check_kept(512);
  end_rest();
}

// Bytes that a close gave back at once, of an epoch with so many slabs, of whose blocks one in
// `keep` survives.
static size_t close_gives(unsigned slabs, unsigned keep, enum tslab_purge purge) {
  open_all(TSLAB_NO_CELLS);
  tsl_epoch_at(slot)->purge = (uint8_t)purge;
  alloc_many(512, slabs * 128);
  free_but(keep);
  close_epoch();
  check_kept(512);
  return os_fake.purged_bytes;
}

// A slab of a large epoch goes back whole only with the last of its few survivors.
static void many_sparse_slabs_give_pages_at_once(void) {
  CHECK_EQ(close_gives(16, 128, TSLAB_PURGE_DECAY),
           16 * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  CHECK_EQ(tsl_purge_returnable_bytes(), 0);
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 16 * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  end_rest();
}

static void few_slabs_wait(void) { CHECK_EQ(close_gives(15, 128, TSLAB_PURGE_DECAY), 0); }
static void dense_slabs_wait(void) { CHECK_EQ(close_gives(16, 7, TSLAB_PURGE_DECAY), 0); }
static void slabs_that_are_kept_wait(void) { CHECK_EQ(close_gives(16, 128, TSLAB_PURGE_KEEP), 0); }

static void a_close_has_a_bound(void) {
  CHECK_EQ(close_gives(300, 128, TSLAB_PURGE_DECAY),
           256 * (TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES));
}

// Idle bytes before the close of an epoch with four slabs, of whose blocks one in `keep` survives.
static size_t idle_before_close(unsigned keep) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(512, 4 * 128);
  free_but(keep);
  size_t before = tsl_purge_returnable_bytes();
  close_epoch();
  return before;
}

// A helper comes when enough is idle, wherever it lies.
static void dead_pages_count_as_idle_until_a_round_met_them(void) {
  size_t before = idle_before_close(128);
  CHECK_EQ(tsl_purge_returnable_bytes() - before, 4 * (TSL_UNIT_BYTES - takes(512)));
  steps(DELAY_MS - 1);
  CHECK_EQ(tsl_purge_returnable_bytes() - before, 4 * (TSL_UNIT_BYTES - takes(512)));
  steps(3 * DELAY_MS);
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
  end_rest();
}

// What no round could give back counts no longer, once one has tried.
static void what_stays_is_not_idle(void) {
  size_t before = idle_before_close(128);
  os_fake_fail_all(OS_FAKE_PURGE);
  steps(8 * DELAY_MS);
  os_fake_recover();
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
  end_rest();
}

static void dense_survivors_are_not_idle(void) {
  size_t before = idle_before_close(7);
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
  steps(4 * DELAY_MS);
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
  end_rest();
}

static void a_fork_forgets_what_is_dead(void) {
  idle_before_close(128);
  tsl_remains_after_fork();
  tsl_purge_forget_loose();
  size_t before = tsl_purge_returnable_bytes();
  steps(4 * DELAY_MS);
  CHECK_EQ(tsl_purge_returnable_bytes(), before);
  end_rest();
}

static void a_slab_that_is_half_dead_gives_pages_back(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(512, 128);
  for (unsigned i = 64; i < block_count; i++) {
    free_as(heap, blocks[i]);
    blocks[i] = NULL;
  }
  close_epoch();
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, TSL_UNIT_BYTES / 2);
  check_kept(512);
  end_rest();
}

// A block that lies across the end of a page keeps both.
static void blocks_across_pages_keep_both(void) {
  open_all(CELL_BYTES);
  alloc_many(3072, 20);
  for (unsigned i = 0; i < block_count; i++) {
    if (i == 1) continue;
    free_as(heap, blocks[i]);
    blocks[i] = NULL;
  }
  close_epoch();
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, CELL_BYTES - 2 * OS_FAKE_LEAST_PAGE_BYTES);
  check_kept(3072);
  end_rest();
}

static void nothing_goes_back_before_the_delay(void) {
  fill_three_cells();
  close_epoch();
  steps(DELAY_MS - 1);
  CHECK_EQ(os_fake.purged_bytes, 0);
  CHECK(!tsl_remains_wait());
  os_fake.now_ms++;
  CHECK(tsl_remains_wait());
  end_rest();
}

// Nor is it looked at again and again.
static void goes_back_once(void) {
  fill_three_cells();
  close_epoch();
  steps(2 * DELAY_MS);
  uint64_t calls = os_fake.calls[OS_FAKE_PURGE];
  steps(10 * DELAY_MS);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], calls);
  CHECK(!tsl_remains_wait());
  end_rest();
}

// A cell and slabs that are more than half full stay as they are, until half of that is gone.
static void thinned_out_later(size_t first_cell_bytes) {
  open_all(first_cell_bytes);
  alloc_many(512, 128);
  free_but(3);
  for (unsigned i = 1; i < block_count; i += 3) blocks[i] = alloc(512);
  unsigned count = block_count;
  close_epoch();
  steps(2 * DELAY_MS);
  size_t before = os_fake.purged_bytes;
  for (unsigned i = 1; i < count; i++) {
    if (blocks[i] != NULL) free_as(other, blocks[i]);
    blocks[i] = NULL;
  }
  steps(2 * DELAY_MS);
  CHECK_LE(before + TSL_UNIT_BYTES / 2, os_fake.purged_bytes);
  check_kept(512);
  end_rest();
}

static void cells_thinned_out_later(void) { thinned_out_later(CELL_BYTES); }
static void slabs_thinned_out_later(void) { thinned_out_later(TSLAB_NO_CELLS); }

static void free_from(unsigned first, unsigned end) {
  for (unsigned i = first; i < end; i++) {
    free_as(other, blocks[i]);
    blocks[i] = NULL;
  }
}

// Half of what was left at the last time, not of what the seal left.
static void a_slab_gives_pages_back_again_when_half_is_gone(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(512, 128);
  free_from(60, 128);
  close_epoch();
  free_from(32, 60);
  steps(2 * DELAY_MS);
  size_t before = os_fake.purged_bytes;
  CHECK_EQ(before, TSL_UNIT_BYTES / 4 * 3);
  free_from(17, 32);
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, before);
  free_from(16, 17);
  steps(2 * DELAY_MS);
  CHECK_GE(os_fake.purged_bytes, before + TSL_UNIT_BYTES / 8);
  check_kept(512);
  end_rest();
}

static void refused_purges_lose_nothing(void) {
  fill_three_cells();
  close_epoch();
  os_fake_fail_all(OS_FAKE_PURGE);
  steps(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  os_fake_recover();
  check_kept(64);
  end_rest();
}

// What is open, and what nobody closed yet, is nobody's remains.
static void open_epochs_keep_their_pages(void) {
  fill_three_cells();
  steps(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  CHECK(!tsl_remains_wait());
  close_epoch();
  end_rest();
}

// A survivor in the second page of each of 100 cells, so that each has two runs of dead pages.
enum { MANY = 100, RUNS = 2, DEAD_BYTES = CELL_BYTES - OS_FAKE_LEAST_PAGE_BYTES };

static void close_many(void) {
  open_all(CELL_BYTES);
  for (unsigned cell = 0; cell < MANY; cell++) {
    if (cell != 0) open_epoch(CELL_BYTES);
    alloc_many(64, 1000);
    for (unsigned i = 0; i < block_count; i++) {
      if (i != 100) free_as(heap, blocks[i]);
    }
    close_epoch();
  }
  os_fake.now_ms++;
  tsl_remains_step(1);  // forgets what was taken
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 0);
}

// However long the last step is ago: a piece that is begun is finished.
static void a_late_step_is_bounded(void) {
  close_many();
  for (unsigned i = 0; i < 100; i++) {
    uint64_t before = os_fake.calls[OS_FAKE_PURGE];
    os_fake.now_ms += 100 * DELAY_MS;
    tsl_remains_step(1);
    CHECK_LE(os_fake.calls[OS_FAKE_PURGE], before + 32 + RUNS - 1);
  }
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], MANY * RUNS);
  CHECK_EQ(os_fake.purged_bytes, MANY * DEAD_BYTES);
}

// One step a millisecond, whoever asks.
static void steps_are_paced(void) {
  close_many();
  os_fake.now_ms += 2 * DELAY_MS;
  for (unsigned i = 0; i < 10000; i++) tsl_remains_step(1);
  CHECK_LE(os_fake.calls[OS_FAKE_PURGE], 32 + RUNS - 1);
  steps(100);
  CHECK_EQ(os_fake.purged_bytes, MANY * DEAD_BYTES);
}

// A thread of its own gives back as many times as much as it says.
static void the_pace_is_followed(void) {
  close_many();
  os_fake.now_ms += 2 * DELAY_MS;
  tsl_remains_step(3);
  CHECK_GE(os_fake.calls[OS_FAKE_PURGE], 3 * 32);
  CHECK_LE(os_fake.calls[OS_FAKE_PURGE], 3 * 32 + RUNS - 1);
}

// What is given back can be taken instead of more.
static void who_takes_memory_gives_more_back(void) {
  close_many();
  os_fake.now_ms += 2 * DELAY_MS;
  tsl_remains_take(10);
  tsl_remains_step(1);
  CHECK_EQ(os_fake.calls[OS_FAKE_PURGE], 32 + 10 * 4);
  os_fake.now_ms++;
  tsl_remains_take(1000000);
  tsl_remains_step(1);
  CHECK_EQ(os_fake.purged_bytes, MANY * DEAD_BYTES);
}

// Four cells share a unit: each gives back what is its own.
static void cells_of_a_unit_are_told_apart(void) {
  enum { EPOCHS = 8, BYTES = 16 * KIB };
  static void *kept[EPOCHS];
  open_all(BYTES);
  for (unsigned i = 0; i < EPOCHS; i++) {
    if (i != 0) open_epoch(BYTES);
    alloc_many(64, 256);
    for (unsigned b = 0; b < block_count; b++) {
      if (i % 2 == 0 && b != 100) free_as(heap, blocks[b]);
    }
    kept[i] = blocks[100];
    close_epoch();
  }
  steps(2 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, EPOCHS / 2 * (BYTES - OS_FAKE_LEAST_PAGE_BYTES));
  for (unsigned i = 0; i < EPOCHS; i++) CHECK_EQ(*(unsigned char *)kept[i], 0xa5);
  check_kept(64);
}

static void slabs_of_several_units_are_one(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(20000, 60);
  free_but(60);
  close_epoch();
  steps(2 * DELAY_MS);
  size_t held = tsl_epoch_at(slot)->held_bytes;
  CHECK_LE(2 * TSL_UNIT_BYTES, held);
  CHECK_LE(held - 6 * OS_FAKE_LEAST_PAGE_BYTES, os_fake.purged_bytes);
  check_kept(20000);
  end_rest();
}

// A thread that only takes hot blocks comes by all the same.
static void seen_by_a_thread_in_a_steady_state(void) {
  fill_three_cells();
  close_epoch();
  for (unsigned i = 0; i < 1 << 20 && os_fake.purged_bytes == 0; i++) {
    os_fake.now_ms += i % 1024 == 0;
    tsl_fast_free(tsl_fast_malloc(64));
  }
  CHECK_LE(14 * 4 * KIB, os_fake.purged_bytes);
  end_rest();
}

// The hardened build has no cells, a guard in each slab, and blocks in no order.
static void what_slabs_keep_is_whole(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(512, 4 * 128);
  free_but(128);
  close_epoch();
  steps(2 * DELAY_MS);
  CHECK_LE(TSL_UNIT_BYTES, os_fake.purged_bytes);
  check_kept(512);
  end_rest();
}

int main(void) {
  RUN(without_survivors_no_unit_is_looked_at);
  RUN_UNLESS_SECURE(dead_pages_of_cells_go_back);
  RUN_UNLESS_SECURE(dead_pages_of_slabs_go_back);
  RUN_UNLESS_SECURE(many_sparse_slabs_give_pages_at_once);
  RUN_UNLESS_SECURE(few_slabs_wait);
  RUN_UNLESS_SECURE(dense_slabs_wait);
  RUN_UNLESS_SECURE(slabs_that_are_kept_wait);
  RUN_UNLESS_SECURE(dead_pages_count_as_idle_until_a_round_met_them);
  RUN_UNLESS_SECURE(a_close_has_a_bound);
  RUN_UNLESS_SECURE(what_stays_is_not_idle);
  RUN_UNLESS_SECURE(dense_survivors_are_not_idle);
  RUN_UNLESS_SECURE(a_fork_forgets_what_is_dead);
  RUN_UNLESS_SECURE(a_slab_that_is_half_dead_gives_pages_back);
  RUN_UNLESS_SECURE(blocks_across_pages_keep_both);
  RUN_UNLESS_SECURE(nothing_goes_back_before_the_delay);
  RUN_UNLESS_SECURE(goes_back_once);
  RUN_UNLESS_SECURE(cells_thinned_out_later);
  RUN_UNLESS_SECURE(slabs_thinned_out_later);
  RUN_UNLESS_SECURE(a_slab_gives_pages_back_again_when_half_is_gone);
  RUN_UNLESS_SECURE(refused_purges_lose_nothing);
  RUN_UNLESS_SECURE(open_epochs_keep_their_pages);
  RUN_UNLESS_SECURE(a_late_step_is_bounded);
  RUN_UNLESS_SECURE(steps_are_paced);
  RUN_UNLESS_SECURE(the_pace_is_followed);
  RUN_UNLESS_SECURE(who_takes_memory_gives_more_back);
  RUN_UNLESS_SECURE(cells_of_a_unit_are_told_apart);
  RUN_UNLESS_SECURE(slabs_of_several_units_are_one);
  RUN_UNLESS_SECURE(seen_by_a_thread_in_a_steady_state);
  RUN(what_slabs_keep_is_whole);
  return test_status();
}
