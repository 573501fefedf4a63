#include "epochs.h"
#include "heap/cells.h"
#include "heap/rest.h"
#include "homes.h"
#include "state/bin.h"
#include "state/change.h"
#include "takes.h"
#include "told.h"
#include "upkeep/collect.h"
#include "upkeep/reports.h"

// How far what a thread has told may be behind, while it says nothing.

static struct tsl_heap *mine, *other;

static void open_homes(void) { homes_open((size_t)1 << 28, &mine, &other); }

static void *alloc(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  return block;
}

static void be(struct tsl_heap *home) { tsl_heap_current = home; }

enum {
  MOST_BEHIND = 512 << 10,
  BATCH_BYTES = 8 << 20,
  PART_BYTES = 768 << 10,
  MOST_BATCH = BATCH_BYTES / 16
};

static void *batch[MOST_BATCH];

static void shuffle(unsigned count) {
  uint64_t seed = 11;
  for (unsigned i = count; i > 1; i--) {
    unsigned other_one = test_random_below(&seed, i);
    void *block = batch[i - 1];
    batch[i - 1] = batch[other_one];
    batch[other_one] = block;
  }
}

static void check_behind(unsigned class, uint32_t live, unsigned threads) {
  int64_t behind = (int64_t)(told_of_class(class) - live);
  CHECK_LE(llabs((long long)behind) * tsl_sizeclasses[class].bytes, threads * MOST_BEHIND);
}

static void check_batch(unsigned class) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  uint32_t count = (uint32_t)(BATCH_BYTES / bytes), live_blocks = 0;
  be(mine);
  for (; live_blocks < count; live_blocks++) {
    batch[live_blocks] = alloc(bytes - TSL_CANARY_BYTES);
    check_behind(class, live_blocks + 1, 1);
  }
  shuffle(count);
  for (; live_blocks > count / 2; live_blocks--) {
    tsl_fast_free(batch[live_blocks - 1]);
    check_behind(class, live_blocks - 1, 1);
  }
  be(other);
  for (; live_blocks > 0; live_blocks--) {
    tsl_fast_free(batch[live_blocks - 1]);
    check_behind(class, live_blocks - 1, 2);
  }
}

static void no_class_is_far_behind(void) {
  open_homes();
  tsl_report_start();
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    check_context_set("class %d", (int)class);
    check_batch(class);
  }
}

// Each burst is a little longer than a bin of the usual length (B6).
static void check_bursts(unsigned class) {
  enum { BURSTS = 12 };
  size_t bytes = tsl_sizeclasses[class].bytes;
  unsigned count = tsl_bin_usual(class) + tsl_bin_usual(class) / 8;
  be(mine);
  for (unsigned burst = 0; burst < BURSTS; burst++) {
    for (uint32_t i = 0; i < count; i++) {
      batch[i] = alloc(bytes - TSL_CANARY_BYTES);
      check_behind(class, i + 1, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
      tsl_fast_free(batch[i]);
      check_behind(class, count - i - 1, 1);
    }
  }
  CHECK_GE(tsl_bin_limit(mine, class), tsl_at_most(count, tsl_bin_longest(class)));
}

// Allocates until the stock is full, and the thread has more blocks than `least`.
static uint32_t fill_stock(unsigned class, uint32_t least) {
  size_t word = tsl_at_most(tsl_sizeclasses[class].capacity, 64);
  uint32_t live_blocks = 0;
  while (live_blocks <= least || tsl_stock_blocks(&mine->store->stocks[class]) + 1 < word) {
    CHECK_LE(live_blocks, MOST_BATCH - 1);
    batch[live_blocks++] = alloc(tsl_sizeclasses[class].bytes - TSL_CANARY_BYTES);
  }
  return live_blocks;
}

// A bin is filled, passes some on, which is told, and is emptied with the stock.
static void check_longest(unsigned class) {
  uint32_t frees = tsl_bin_longest(class) + tsl_tally_most_untold[class];
  uint32_t live_blocks = fill_stock(class, frees);
  for (uint32_t i = 0; i < frees; i++) {
    tsl_fast_free(batch[--live_blocks]);
    check_behind(class, live_blocks, 1);
  }
  size_t hot = tsl_heap_hot_blocks(mine, class);
  CHECK_GE(hot, tsl_bin_limit(mine, class) + tsl_stock_blocks(&mine->store->stocks[class]));
  CHECK_GE(tsl_bin_longest(class), tsl_bin_usual(class));
  for (size_t i = 0; i < hot; i++) {
    batch[live_blocks++] = alloc(tsl_sizeclasses[class].bytes - TSL_CANARY_BYTES);
    check_behind(class, live_blocks, 1);
  }
  while (live_blocks != 0) tsl_fast_free(batch[--live_blocks]);
}

static void no_long_bin_is_far_behind(void) {
  open_homes();
  tsl_report_start();
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    check_context_set("class %d", (int)class);
    check_bursts(class);
    check_longest(class);
  }
}

static void check_part_behind(tslab_epoch epoch, uint64_t bytes) {
  int64_t behind = (int64_t)(told_of_epoch(tsl_epoch_slot(epoch)).bytes - bytes);
  CHECK_LE(llabs((long long)behind), MOST_BEHIND);
}

// Its thread stays in a scope.
static void check_part_in_cells(size_t bytes) {
  uint32_t count = (uint32_t)(PART_BYTES / bytes), live_blocks = 0;
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (; live_blocks < count; live_blocks++) {
    batch[live_blocks] = alloc(bytes - TSL_CANARY_BYTES);
    check_part_behind(epoch, (live_blocks + 1) * bytes);
  }
  shuffle(count);
  for (; live_blocks > 0; live_blocks--) {
    tsl_fast_free(batch[live_blocks - 1]);
    check_part_behind(epoch, (live_blocks - 1) * bytes);
  }
  epochs_leave(&scope);
  epochs_close(epoch, 0);
}

// As a sampled block that is the only one of its cell.
static void *alloc_apart(size_t bytes) {
  struct tsl_heap *heap = tsl_heap_current;
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_cell_number cell = tsl_cells_take_apart(heap, bytes <= 4096 ? TSL_CELL_4K : TSL_CELL_64K);
  CHECK(cell != 0);
  tsl_cells_hand_out(heap, cell, tsl_cell_address(cell), takes_class(bytes));
  tsl_change_end(change);
  return (void *)tsl_cell_address(cell);
}

static void check_part_of_sampled_blocks(size_t bytes) {
  uint32_t count = (uint32_t)(PART_BYTES / bytes), live_blocks = 0;
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (; live_blocks < count; live_blocks++) {
    batch[live_blocks] = alloc_apart(bytes);
    check_part_behind(epoch, (live_blocks + 1) * bytes);
  }
  for (; live_blocks > 0; live_blocks--) {
    tsl_fast_free(batch[live_blocks - 1]);
    check_part_behind(epoch, (live_blocks - 1) * bytes);
  }
  epochs_leave(&scope);
  epochs_close(epoch, 0);
}

static void no_part_of_sampled_blocks_is_far_behind(void) {
  open_homes();
  tsl_report_start();
  check_part_of_sampled_blocks(64);
  check_part_of_sampled_blocks(32768);
}

// Blocks that go from hand to hand pass no other slow path. Returns how many of their allocations
// were untold at most.
static uint64_t most_untold_pairs(unsigned pairs_a_ms) {
  enum { PAIRS = 1000000 };
  tsl_report_start();
  const struct tsl_bins_row *row = TSL_ROW(bins, mine->number);
  uint64_t most = 0;
  for (unsigned i = 1; i <= PAIRS; i++) {
    if (i % pairs_a_ms == 0) os_fake.now_ms++;
    tsl_fast_free(alloc(64));
    uint64_t untold = i - row->allocations[takes_class(64)];
    if (untold > most) most = untold;
  }
  tsl_report_heap(mine);
  CHECK_EQ(row->allocations[takes_class(64)], PAIRS);
  return most;
}

static void allocations_of_hot_blocks_are_not_far_behind(void) {
  open_homes();
  CHECK_LE(most_untold_pairs(1000), (1 << 14) + 64);
}

// Where 16,384 of them take less than TSL_TICK_MS, four times as many.
static void fast_threads_tell_less_often(void) {
  open_homes();
  uint64_t most = most_untold_pairs(100000);
  CHECK_LE(most, (1 << 16) + 64);
  if (!TSL_SECURE) CHECK_GE(most, 1 << 15);
}

static void a_cell_that_is_cut_anew_is_told(void) {
  open_homes();
  tslab_scope scope;
  tslab_epoch epoch = epochs_open();
  for (unsigned turn = 0; turn < 2; turn++) {
    epochs_enter(&scope, epoch);
    for (unsigned i = 0; i < 4 * turn; i++) tsl_fast_free(batch[i]);
    for (unsigned i = 0; i < 4; i++) batch[i] = alloc(1024);
    const struct tsl_heaps_row *row = TSL_ROW(heaps, tsl_heap_current->number);
    epochs_leave(&scope);
    CHECK_EQ(row->cut_objects, 4 * (turn + 1));
    CHECK_EQ(row->freed_objects, 4 * turn);
  }
}

static void what_is_collected_is_told(void) {
  open_homes();
  tsl_report_start();
  for (unsigned i = 0; i < 40; i++) batch[i] = alloc(64);
  for (unsigned i = 0; i < 20; i++) tsl_fast_free(batch[i]);
  tsl_home_collect(mine->home);
  const struct tsl_bins_row *row = TSL_ROW(bins, mine->number);
  CHECK_EQ(row->out[takes_class(64)], 20);
  CHECK_EQ(row->hot[takes_class(64)], 0);
}

// Blocks at hand go back to slabs, of which some are told meanwhile.
static void rest_is_told_as_it_is(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_bins_row *row = TSL_ROW(bins, mine->number);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    check_context_set("class %d", (int)class);
    void *block = alloc(tsl_sizeclasses[class].bytes - TSL_CANARY_BYTES);
    tsl_home_rest_all(mine->home);
    CHECK_LE(row->allocations[class], 1);
    CHECK_EQ(row->returned[class], 0);
    tsl_fast_free(block);
    tsl_home_rest_all(mine->home);
    CHECK_LE(row->allocations[class], 1);
    CHECK_LE(row->returned[class], TSL_SECURE ? 1 : 0);
  }
  tsl_home_collect(mine->home);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    check_context_set("class %d", (int)class);
    CHECK_EQ(row->allocations[class], 1);
    CHECK_EQ(row->out[class], 0);
    CHECK_EQ(row->returned[class], TSL_SECURE ? 1 : 0);
  }
}

// Others free what the thread allocates, and as much again.
static void a_part_that_others_free_is_not_far_behind(void) {
  enum { LAG = 64, BLOCKS = 20000 };
  open_homes();
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  struct tsl_heap *part = tsl_heap_current;
  for (unsigned i = 0; i < BLOCKS; i++) {
    be(part);
    batch[i % LAG] = alloc(1024);
    be(other);
    if (i + 1 >= LAG) tsl_fast_free(batch[(i + 1) % LAG]);
    check_part_behind(epoch, (i + 1 < LAG ? i + 1 : LAG - 1) * 1024);
  }
  be(part);
  epochs_leave(&scope);
}

// Older blocks alone were freed.
static void a_scope_that_only_freed_tells_when_it_is_left(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(batch, epoch, 1000, 200);
  tslab_scope scope;
  for (unsigned freed = 0; freed < 100; freed += 7) {
    epochs_enter(&scope, epoch);
    for (unsigned i = freed; i < freed + 7; i++) tsl_fast_free(batch[i]);
    epochs_leave(&scope);
    check_told(epoch, 200 - freed - 7, (200 - freed - 7) * takes(1000));
  }
}

static void no_part_in_cells_is_far_behind(void) {
  open_homes();
  check_part_in_cells(16);
  check_part_in_cells(512);
  check_part_in_cells(8192);
}

// A part in cells is told of when 256 KiB were allocated since, and not before: that costs time.
static void parts_in_cells_are_told_of_seldom(void) {
  tslab_scope scope;
  open_homes();
  tsl_report_start();
  epochs_enter(&scope, epochs_open());
  const struct tsl_heap *part = tsl_heap_current;
  while (part->cell_count < 4) alloc(64);
  CHECK_EQ(part->told_granules, 0);
  while (part->cell_count < 7) alloc(64);
  CHECK_GE(part->told_granules, (256 << 10) / 16);
  uint64_t told = part->told_granules;
  while (part->cell_count < 8) alloc(64);
  CHECK_EQ(part->told_granules, told);
}

int main(void) {
  RUN(no_class_is_far_behind);
  RUN_UNLESS_SECURE(no_long_bin_is_far_behind);
  RUN_UNLESS_SECURE(no_part_of_sampled_blocks_is_far_behind);
  RUN(allocations_of_hot_blocks_are_not_far_behind);
  RUN(fast_threads_tell_less_often);
  RUN_UNLESS_SECURE(a_cell_that_is_cut_anew_is_told);
  RUN(what_is_collected_is_told);
  RUN(rest_is_told_as_it_is);
  RUN_UNLESS_SECURE(a_part_that_others_free_is_not_far_behind);
  RUN(a_scope_that_only_freed_tells_when_it_is_left);
  RUN_UNLESS_SECURE(no_part_in_cells_is_far_behind);
  RUN_UNLESS_SECURE(parts_in_cells_are_told_of_seldom);
  return test_status();
}
