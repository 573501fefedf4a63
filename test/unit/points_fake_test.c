#include "tell/points.h"

#include <math.h>
#include <string.h>

#include "heap/rest.h"
#include "heap/store.h"
#include "samples.h"
#include "takes.h"
#include "upkeep/refill.h"

// Stocks, filled from slabs that nobody used before.
static void stocks_are_sampled_by_bytes(size_t bytes) {
  open_homes(MEAN);
  alloc(MOST, bytes);
  check_share(totals().allocations, MOST, bytes);
  CHECK_EQ(totals().frees, 0);
  state_check();
  free_all(MOST, bytes);
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

static void small_stocks(void) { stocks_are_sampled_by_bytes(16); }

static void stocks(void) { stocks_are_sampled_by_bytes(256); }

static void medium_stocks(void) { stocks_are_sampled_by_bytes(2048); }

// Bins: the same blocks again and again.
static void bins_are_sampled_by_bytes(size_t bytes) {
  enum { TIMES = 4000, HELD = 32 };
  open_homes(MEAN);
  for (unsigned i = 0; i < TIMES; i++) {
    alloc(HELD, bytes);
    free_all(HELD, bytes);
  }
  check_share(totals().allocations, TIMES * HELD, tslab_good_size(bytes));
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

static void small_bins(void) { bins_are_sampled_by_bytes(24); }

static void bins(void) { bins_are_sampled_by_bytes(512); }

static void large_bins(void) { bins_are_sampled_by_bytes(30000); }

// Of a pattern as long as a handful of a stock, each place is sampled as often as any other.
static void each_place_of_a_pattern_counts_the_same(void) {
  enum { PLACES = 64, TIMES = 20000, BYTES = 512 };
  unsigned counts[PLACES] = {0};
  open_homes(MEAN);
  for (unsigned i = 0; i < TIMES; i++) {
    for (unsigned place = 0; place < PLACES; place++) {
      uint64_t before = tsl_load_relaxed(&process()->samples_taken);
      blocks[place] = tsl_fast_malloc(BYTES);
      counts[place] += process()->samples_taken != before;
    }
    for (unsigned place = 0; place < PLACES; place++) tsl_fast_free(blocks[place]);
  }
  for (unsigned place = 0; place < PLACES; place++) check_share(counts[place], TIMES, BYTES);
}

static void cells_are_sampled_by_bytes(void) {
  enum { EPOCHS = 4000, EACH = 50, BYTES = 96 };
  open_homes(MEAN);
  for (unsigned i = 0; i < EPOCHS; i++) {
    tslab_epoch epoch = epochs_open();
    epochs_alloc_many(blocks, epoch, BYTES, EACH);
    if (i % 2 == 0) epochs_free_many(blocks, BYTES, EACH);
    if (i % 4 == 1) CHECK_EQ(tslab_epoch_release(epoch), 0);
    if (i % 4 == 3) {
      epochs_close(epoch, EACH);
      epochs_free_many(blocks, BYTES, EACH);
    }
    if (i % 2 == 0) epochs_close(epoch, 0);
    CHECK(epochs_is_over(epoch));
  }
  check_share(totals().allocations, EPOCHS * EACH, BYTES);
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

enum { SLAB_EPOCHS = 40, BLOCK_BYTES = 512 };

// Blocks of an epoch without cells, from its first one on. A free from outside goes back to the
// slab, one from inside to the bin, from which the next block comes.
static void sample_slabs(unsigned each, bool is_inside) {
  open_homes(MEAN);
  for (unsigned i = 0; i < SLAB_EPOCHS; i++) {
    tslab_epoch_options options = {.size = sizeof options, .first_cell_bytes = TSLAB_NO_CELLS};
    tslab_epoch epoch = tslab_epoch_open("slabs", &options);
    tslab_scope scope;
    if (is_inside) CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
    for (unsigned j = 0; j < each; j++) tsl_fast_free(tslab_epoch_malloc(epoch, BLOCK_BYTES));
    if (is_inside) CHECK_EQ(tslab_scope_leave(&scope), 0);
    epochs_close(epoch, 0);
  }
  check_share(totals().allocations, (double)SLAB_EPOCHS * each, BLOCK_BYTES);
  epochs_check_all_free();
}

static void slabs_of_epochs_are_sampled(void) { sample_slabs(4000, false); }
static void hot_blocks_of_epochs_are_sampled(void) { sample_slabs(4000, true); }
static void few_hot_blocks_of_epochs_are_sampled(void) { sample_slabs(500, true); }

enum { PAIRS = 80, EPOCHS_OF_PAIRS = 600 };

// What is left at the end of a cell, or before an aligned block, is nobody's.
static void rests_of_cells_are_not_sampled(size_t alignment, size_t bytes) {
  open_homes(MEAN);
  for (unsigned i = 0; i < EPOCHS_OF_PAIRS; i++) {
    tslab_epoch epoch = epochs_open();
    for (unsigned j = 0; j < PAIRS; j++) {
      CHECK_EQ(tsl_usable(tslab_epoch_malloc(epoch, 16)), 16);
      CHECK_EQ(tsl_usable(tslab_epoch_aligned_alloc(epoch, alignment, bytes)), bytes);
    }
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
  const double count = PAIRS * EPOCHS_OF_PAIRS;
  double small_ones = count * (1 - exp(-16.0 / MEAN));
  check_share(totals().allocations - (uint64_t)small_ones, count, bytes);
}

static void ends_of_cells_are_not_sampled(void) { rests_of_cells_are_not_sampled(16, 6144); }

static void gaps_of_cells_are_not_sampled(void) { rests_of_cells_are_not_sampled(1024, 1024); }

// A handful that goes back before it is used up takes its point along.
static void handfuls_that_go_back_are_not_sampled(void) {
  enum { TURNS = 20000, EACH = 5, BYTES = 512 };
  open_homes(MEAN);
  for (unsigned i = 0; i < TURNS; i++) {
    for (unsigned j = 0; j < EACH; j++) blocks[j] = tsl_fast_malloc(BYTES);
    for (unsigned j = 0; j < EACH; j++) tsl_fast_free(blocks[j]);
    tsl_home_rest_all(mine->home);
  }
  check_share(totals().allocations, TURNS * EACH, BYTES);
}

// Points come ten times as fast as samples may: each sample stands for ten, and the sums are right.
static void samples_are_bounded_by_time(void (*alloc_some)(void)) {
  enum { RATE = 1000, FASTER = 10, SECONDS = 5, FIRST = 50 * RATE * FASTER / 1000 };
  open_homes(MEAN);
  tsl_options.sample_rate = RATE;
  for (unsigned ms = 0; ms < SECONDS * 1000; ms++) {
    os_fake.now_ms++;
    alloc_some();
  }
  double points = (double)SECONDS * RATE * FASTER;
  double hold_some = points * (1 - exp(-512.0 / MEAN)) / (512.0 / MEAN);  // blocks
  double taken = (double)process()->samples_taken;
  CHECK(taken <= 1.2 * SECONDS * RATE + FIRST && taken >= 0.8 * SECONDS * RATE);
  double deviation = FASTER * sqrt(points / FASTER);
  CHECK(fabs((double)totals().allocations - hold_some) <= 4 * deviation);
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

// So many blocks of 512 bytes hold ten points.
enum { TEN_POINTS = 10 * MEAN / 512 };

static void alloc_hot(void) {
  for (unsigned i = 0; i < TEN_POINTS; i++) tsl_fast_free(tsl_fast_malloc(512));
}

static void hot_samples_are_bounded(void) { samples_are_bounded_by_time(alloc_hot); }

static void alloc_in_cells(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, 512, TEN_POINTS);
  epochs_free_many(blocks, 512, TEN_POINTS);
  epochs_close(epoch, 0);
}

static void samples_in_cells_are_bounded(void) { samples_are_bounded_by_time(alloc_in_cells); }

// Stocks, from slabs that were empty: each handful has points of its own.
static void alloc_stocks(void) {
  for (unsigned i = 0; i < TEN_POINTS; i++) blocks[i] = tsl_fast_malloc(512);
  for (unsigned i = 0; i < TEN_POINTS; i++) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(mine->home);
}

static void samples_of_stocks_are_bounded(void) { samples_are_bounded_by_time(alloc_stocks); }

static void alloc_aligned(void) {
  tslab_epoch epoch = epochs_open();
  for (unsigned i = 0; i < TEN_POINTS; i++) {
    blocks[i] = tslab_epoch_aligned_alloc(epoch, 256, 512);
    CHECK_EQ((uintptr_t)blocks[i] % 256, 0);
  }
  for (unsigned i = 0; i < TEN_POINTS; i++) tsl_fast_free(blocks[i]);
  epochs_close(epoch, 0);
}

static void aligned_samples_are_bounded(void) { samples_are_bounded_by_time(alloc_aligned); }

static void alloc_large(void) {
  void *block = tsl_fast_malloc(10 * MEAN);
  tsl_fast_free(block);
}

// A large block holds ten points, of which one counts.
static void samples_of_large_blocks_are_bounded(void) {
  enum { RATE = 100, SECONDS = 5 };
  open_homes(MEAN);
  tsl_options.sample_rate = RATE;
  for (unsigned ms = 0; ms < SECONDS * 1000; ms++) {
    os_fake.now_ms++;
    alloc_large();
  }
  CHECK((double)process()->samples_taken <= 1.5 * SECONDS * RATE);
  CHECK(fabs((double)totals().allocations - SECONDS * 1000) <= 4 * 10 * sqrt(SECONDS * RATE));
  CHECK_EQ(totals().bytes, totals().allocations * tslab_good_size(10 * MEAN));
  CHECK_EQ(totals().live, 0);
}

// As large as the mean, and larger: most points lie in a block with others.
static void sums_of_bounded_samples_are_right(size_t bytes) {
  enum { SECONDS = 5, A_MS = 20, FASTER = 15 };
  open_homes(MEAN);
  tsl_options.sample_rate = 1000;
  for (unsigned ms = 0; ms < SECONDS * 1000; ms++) {
    os_fake.now_ms++;
    for (unsigned i = 0; i < A_MS; i++) tsl_fast_free(tsl_fast_malloc(bytes));
  }
  double expected = SECONDS * 1000 * A_MS * (1 - exp(-(double)bytes / MEAN));
  double deviation = sqrt(FASTER * expected);
  CHECK_LE(4, mine->home->own->points.times);
  CHECK(fabs((double)totals().allocations - expected) <= 4 * deviation);
}

static void sums_of_bounded_samples_of_dense_points_are_right(void) {
  sums_of_bounded_samples_are_right(MEAN);
}

static void sums_of_bounded_samples_of_denser_points_are_right(void) {
  sums_of_bounded_samples_are_right(2 * MEAN);
}

// Survivors in bursts, each after a silence: some before the rate is known, most after. Six
// deviations: one chance in five hundred million.
static void bursts_are_counted_whole(void) {
  enum { BURSTS = 100, EACH = 20000, BYTES = 512, AN_MS = 100, FASTER = 6 };
  open_homes(MEAN);
  tsl_options.sample_rate = 1000;
  for (unsigned burst = 0; burst < BURSTS; burst++) {
    os_fake.now_ms += 1000;
    for (unsigned i = 0; i < EACH; i++) {
      if (i % AN_MS == 0) os_fake.now_ms++;
      blocks[i] = tsl_fast_malloc(BYTES);
    }
    for (unsigned i = 0; i < EACH; i++) tsl_fast_free(blocks[i]);
  }
  double expected = (double)BURSTS * EACH * (1 - exp(-(double)BYTES / MEAN));
  CHECK(fabs((double)totals().allocations - expected) <= 6 * sqrt(FASTER * expected));
}

// Whatever the mean, and though it changes, samples stand for as many as with the finest.
static void any_mean_gives_the_same_sums(size_t bytes) {
  enum { COUNT = 200000, HELD = 100 };
  uint64_t means[] = {2 * MEAN, 32 * MEAN, 8 * MEAN};
  open_homes(means[0]);
  struct tsl_control_row *control = TSL_ROW(control, 0);
  for (unsigned i = 0; i < sizeof means / sizeof *means; i++) {
    uint64_t before = totals().allocations;
    control->sample_bytes = (uint32_t)means[i];
    tick();
    CHECK_EQ(tsl_points_mean, means[i]);
    for (unsigned j = 0; j < COUNT / HELD; j++) {
      alloc(HELD, bytes);
      free_all(HELD, bytes);
    }
    check_share(totals().allocations - before, COUNT, tslab_good_size(bytes));
  }
  CHECK_EQ(process()->weight_bytes, TSL_POINTS_FINEST);
  CHECK_EQ(totals().live, 0);
}

static void any_mean_for_small_blocks(void) { any_mean_gives_the_same_sums(256); }

static void any_mean_for_medium_blocks(void) { any_mean_gives_the_same_sums(16384); }

static void any_mean_for_large_blocks(void) { any_mean_gives_the_same_sums(131072); }

// A thread that has drawn nothing yet takes hot blocks only after its first refill.
static void the_first_hot_blocks_hold_points(void) {
  enum { TURNS = 16000, BYTES = 512 };
  open_homes(MEAN);
  be(other);
  void *last = tsl_fast_malloc(BYTES), *block = tsl_fast_malloc(BYTES);
  tsl_fast_free(last);  // a bin keeps its last block for last
  for (unsigned i = 0; i < TURNS; i++) {
    tsl_fast_free(block);
    block = tsl_fast_malloc(BYTES);
  }
  check_share(totals().allocations, TURNS, tslab_good_size(BYTES));
}

// A part that is new has drawn nothing before its first block.
static void the_first_block_of_each_part_counts(void) {
  enum { EPOCHS = 2000, BYTES = 1024 };
  open_homes(MEAN);
  for (unsigned i = 0; i < EPOCHS; i++) {
    tslab_scope scope;
    epochs_enter(&scope, epochs_open());
    blocks[i] = tsl_fast_malloc(BYTES);
    epochs_leave(&scope);
  }
  check_share(totals().allocations, EPOCHS, tslab_good_size(BYTES));
}

// A tick draws points anew where these came too fast. A refill whose first block holds one that was
// reached takes it before.
static void a_tick_forgets_no_point_that_was_reached(void) {
  enum { BYTES = 512 };
  open_homes(MEAN);
  blocks[0] = tsl_fast_malloc(BYTES);
  struct tsl_points *points = &mine->home->own->points;
  os_fake.now_ms += 1000;
  points->count = 1000000;
  mine->home->ticks = 1;
  mine->store->sampled_cold |= UINT64_C(1) << takes_class(BYTES);
  uint64_t before = process()->samples_taken;
  CHECK(tsl_heap_refill(mine, takes_class(BYTES)) != NULL);
  CHECK_EQ(process()->samples_taken, before + 1);
  CHECK_EQ(mine->home->ticks, TSL_TICK_REFILLS);
  CHECK_EQ(mine->home->told_ms, os_fake.now_ms);
}

// A point is weighed by how far apart points lay when it was drawn, though another thread has
// followed another mean meanwhile.
static void old_points_keep_their_weight(void) {
  enum { BYTES = 512 };
  open_homes(MEAN);
  blocks[0] = tsl_fast_malloc(BYTES);
  ((struct tsl_control_row *)TSL_ROW(control, 0))->sample_bytes = 512 * MEAN;
  be(other);
  tick();
  CHECK_EQ(tsl_points_mean, 512 * MEAN);
  be(mine);
  uint64_t before = process()->samples_taken;
  for (unsigned i = 1; process()->samples_taken == before; i++) blocks[i] = tsl_fast_malloc(BYTES);
  CHECK_EQ(((struct tsl_samples_row *)TSL_ROW(samples, (uint32_t)before + 1))->times, 1);
}

// Blocks that stay, of many classes, whose points come at a rate at which their distance changes
// again and again.
static void growth_is_counted_whole(void) {
  enum { KINDS = 10, MS = 6500, BYTES = 256 };
  open_homes(MEAN);
  tsl_options.sample_rate = 200;
  double expected = 0;
  for (unsigned ms = 0, i = 0; ms < MS; ms++) {
    os_fake.now_ms++;
    for (unsigned kind = 0; kind < KINDS; kind++) {
      size_t bytes = BYTES + 32 * (kind % KINDS);
      void *block = tsl_fast_malloc(bytes);
      expected += 1 - exp(-(double)tsl_usable(block) / TSL_POINTS_FINEST);
      blocks[i++] = block;
    }
  }
  double deviation = sqrt(4 * expected);  // 171 to 175 over 40 seeds
  CHECK(fabs((double)totals().allocations - expected) <= 3.5 * deviation);
}

static void be_busy(uint64_t sample_rate) {
  open_homes(MEAN);
  tsl_options.sample_rate = sample_rate;
  for (unsigned ms = 0; ms < 200; ms++) {
    os_fake.now_ms++;
    alloc_hot();
  }
}

// What was busy and is not any more is sampled point by point again.
// In 333 ms one point is reached, and three samples a second allow 0.999 of one.
static void what_a_sample_stands_for_is_rounded_up(void) {
  open_homes(MEAN);
  tsl_options.sample_rate = 3;
  struct tsl_points *points = &mine->home->own->points;
  points->count = 1;
  points->since_ms = os_fake.now_ms;
  os_fake.now_ms += 333;
  tsl_home_follow_samples(mine->home);
  CHECK_EQ(points->times, 2);
  CHECK_EQ(points->count, 0);
}

static void a_bound_ends_with_its_cause(void) {
  be_busy(1000);
  CHECK_LE(8, mine->home->own->points.times);
  os_fake.now_ms += 1000;
  for (unsigned i = 0; i < 10; i++) alloc_hot();
  CHECK_EQ(mine->home->own->points.times, 1);
}

static void no_bound_when_none_is_wanted(void) {
  be_busy(0);
  CHECK_EQ(process()->samples_taken, totals().allocations);
}

int main(void) {
  RUN_UNLESS_SECURE(old_points_keep_their_weight);
  RUN_UNLESS_SECURE(growth_is_counted_whole);
  RUN_UNLESS_SECURE(the_first_hot_blocks_hold_points);
  RUN_UNLESS_SECURE(the_first_block_of_each_part_counts);
  RUN_UNLESS_SECURE(a_tick_forgets_no_point_that_was_reached);
  RUN_UNLESS_SECURE(any_mean_for_small_blocks);
  RUN_UNLESS_SECURE(any_mean_for_medium_blocks);
  RUN_UNLESS_SECURE(any_mean_for_large_blocks);
  RUN_UNLESS_SECURE(small_stocks);
  RUN_UNLESS_SECURE(stocks);
  RUN_UNLESS_SECURE(medium_stocks);
  RUN_UNLESS_SECURE(small_bins);
  RUN_UNLESS_SECURE(bins);
  RUN_UNLESS_SECURE(large_bins);
  RUN_UNLESS_SECURE(each_place_of_a_pattern_counts_the_same);
  RUN_UNLESS_SECURE(cells_are_sampled_by_bytes);
  RUN_UNLESS_SECURE(slabs_of_epochs_are_sampled);
  RUN_UNLESS_SECURE(hot_blocks_of_epochs_are_sampled);
  RUN_UNLESS_SECURE(few_hot_blocks_of_epochs_are_sampled);
  RUN_UNLESS_SECURE(ends_of_cells_are_not_sampled);
  RUN_UNLESS_SECURE(gaps_of_cells_are_not_sampled);
  RUN_UNLESS_SECURE(handfuls_that_go_back_are_not_sampled);
  RUN_UNLESS_SECURE(hot_samples_are_bounded);
  RUN_UNLESS_SECURE(samples_in_cells_are_bounded);
  RUN_UNLESS_SECURE(samples_of_stocks_are_bounded);
  RUN_UNLESS_SECURE(aligned_samples_are_bounded);
  RUN_UNLESS_SECURE(samples_of_large_blocks_are_bounded);
  RUN_UNLESS_SECURE(sums_of_bounded_samples_of_dense_points_are_right);
  RUN_UNLESS_SECURE(sums_of_bounded_samples_of_denser_points_are_right);
  RUN_UNLESS_SECURE(bursts_are_counted_whole);
  RUN_UNLESS_SECURE(what_a_sample_stands_for_is_rounded_up);
  RUN_UNLESS_SECURE(a_bound_ends_with_its_cause);
  RUN_UNLESS_SECURE(no_bound_when_none_is_wanted);
  return test_status();
}
