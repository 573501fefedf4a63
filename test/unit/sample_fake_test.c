#include "epoch/sample.h"

#include <math.h>
#include <string.h>

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "epoch/mixed.h"
#include "epoch/report.h"
#include "epoch/rows.h"
#include "epochs.h"
#include "homes.h"

enum { MEAN = 16384, MOST = 1 << 16 };

static struct tsl_heap *mine, *other;
static void *blocks[MOST];

static void be(struct tsl_heap *home) { tsl_heap_current = home; }

static void tick(void) {
  os_fake.now_ms++;
  tsl_report_tick(tsl_heap_current->home);
  tsl_heap_follow_samples(tsl_heap_current->home);
}

static void open_homes(uint64_t mean) {
  tsl_options.sample_bytes = mean;
  homes_open((size_t)1 << 30, &mine, &other);
  tick();
  CHECK_EQ(tsl_sample_mean, mean);
}

static const struct tsl_process_row *process(void) { return TSL_ROW(process, 0); }

struct totals {
  uint64_t allocations, bytes, frees, live, live_bytes;
};

// What a reader of the file finds.
static struct totals totals(void) {
  struct totals totals = {0};
  for (uint32_t i = 1; i < tsl_mirror_tables[TSL_ROWS_sites].ready; i++) {
    const struct tsl_sites_row *site = TSL_ROW(sites, i);
    if (site->depth == 0) continue;
    if (site->class < TSL_CLASSES)
      CHECK_EQ(site->bytes, site->allocations * tsl_sizeclasses[site->class].bytes);
    totals.allocations += site->allocations;
    totals.bytes += site->bytes;
    totals.frees += site->frees;
  }
  for (uint32_t i = 1; i < tsl_mirror_tables[TSL_ROWS_samples].ready; i++) {
    const struct tsl_samples_row *sample = TSL_ROW(samples, i);
    if (sample->site == 0) continue;
    totals.live += sample->times;
    totals.live_bytes += sample->times * sample->bytes;
  }
  CHECK_EQ(totals.live, totals.allocations - totals.frees);
  return totals;
}

// So many samples of `count` blocks are to be expected; four deviations are allowed.
static void check_share(uint64_t samples, double count, size_t bytes) {
  double share = 1 - exp(-(double)bytes / MEAN), expected = count * share;
  double deviation = sqrt(count * share * (1 - share));
  CHECK(fabs((double)samples - expected) <= 4 * deviation + 1);
}

static void alloc(unsigned count, size_t bytes) {
  for (unsigned i = 0; i < count; i++) {
    blocks[i] = tsl_fast_malloc(bytes);
    pattern_write(blocks[i], bytes, i);
  }
}

static void free_all(unsigned count, size_t bytes) {
  for (unsigned i = 0; i < count; i++) {
    CHECK(pattern_is(blocks[i], bytes, i, bytes));
    tsl_fast_free(blocks[i]);
  }
}

static void nothing_is_sampled_unasked(void) {
  open_homes(0);
  tsl_report_start();
  alloc(MOST, 256);
  CHECK_EQ(tsl_mirror_tables[TSL_ROWS_sites].ready, 0);
  CHECK_EQ(process()->sample_bytes, 0);
  CHECK_EQ(process()->weight_bytes, 0);
}

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
    tsl_heap_rest_all(mine);
  }
  check_share(totals().allocations, TURNS * EACH, BYTES);
}

static void aligned_blocks_of_epochs_stay_aligned(void) {
  enum { COUNT = 2000, ALIGNMENT = 1024 };
  open_homes(MEAN);
  tslab_epoch epoch = epochs_open();
  for (unsigned i = 0; i < COUNT; i++) {
    void *block = tslab_epoch_aligned_alloc(epoch, ALIGNMENT, 100);
    CHECK_EQ((uintptr_t)block % ALIGNMENT, 0);
  }
  CHECK_GE(totals().live, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
}

// A block of many means is sampled always; what lies between, by its bytes.
static void large_blocks_are_sampled(void) {
  open_homes(MEAN);
  for (unsigned i = 0; i < 100; i++) blocks[i] = tsl_fast_malloc(1 << 20);
  CHECK_EQ(totals().live, 100);
  CHECK_EQ(totals().live_bytes, UINT64_C(100) << 20);
  blocks[0] = tslab_realloc(blocks[0], 8 << 20);
  CHECK(blocks[0] != NULL);
  CHECK_EQ(totals().live, 100);
  for (unsigned i = 0; i < 100; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(totals().live, 0);
}

// A sample says where, when, for which epoch.
static void a_sample_tells_of_its_block(void) {
  open_homes(MEAN);
  tslab_epoch epoch = epochs_open();
  os_fake.now_ms = 777;
  const void *block = tslab_epoch_malloc(epoch, 1 << 20);
  const struct tsl_samples_row *sample = TSL_ROW(samples, 1);
  const struct tsl_sites_row *site = TSL_ROW(sites, sample->site);
  CHECK_EQ(sample->address, (uintptr_t)block);
  CHECK_EQ(sample->bytes, 1 << 20);
  CHECK_EQ(sample->epoch, epoch);
  CHECK_EQ(sample->sampled_ms, 777);
  CHECK_EQ(site->class, TSL_CLASSES);
  CHECK_EQ(site->label, tsl_epoch_at(tsl_epoch_slot(epoch))->label);
  CHECK_GE(site->depth, 2);
  for (unsigned i = 0; i < TSL_SITE_FRAMES; i++) CHECK((site->frames[i] != 0) == (i < site->depth));
}

TSL_NOINLINE static void *one_way(void) { return tsl_fast_malloc(1 << 20); }
TSL_NOINLINE static void *another_way(void) { return tsl_fast_malloc(1 << 20); }

static void sites_are_told_apart(void) {
  volatile unsigned times = 10;  // a loop that is unrolled has ten places
  open_homes(MEAN);
  for (unsigned i = 0; i < times; i++) {
    blocks[2 * i] = one_way();
    blocks[2 * i + 1] = another_way();
  }
  CHECK_EQ(((struct tsl_sites_row *)TSL_ROW(sites, 1))->allocations, 10);
  CHECK_EQ(((struct tsl_sites_row *)TSL_ROW(sites, 2))->allocations, 10);
  CHECK_EQ(((struct tsl_sites_row *)TSL_ROW(sites, 3))->depth, 0);
}

static void what_the_unwinder_allocates_is_not_unwound(void) {
  open_homes(MEAN);
  mine->unwinding = true;
  blocks[0] = one_way();
  mine->unwinding = false;
  const struct tsl_sites_row *site = TSL_ROW(sites, 1);
  CHECK_EQ(site->allocations, 1);
  CHECK_NE(site->depth, 1);
}

// Frees by another thread, and their memory.
static void strangers_end_samples(void) {
  enum { COUNT = 20000, BYTES = 512 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  CHECK_GE(totals().live, 1);
  be(other);
  free_all(COUNT, BYTES);
  tsl_heap_collect(other);
  CHECK_EQ(totals().live, 0);
  be(mine);
  CHECK(mine->cell_count != 0);
  epochs_check_all_free();
}

// Looks find them one after the other, however many live on before them.
static void looks_give_cells_back(void) {
  enum { COUNT = 4000, BYTES = 4096 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  uint32_t before = mine->cell_count;
  be(other);
  for (unsigned i = COUNT / 2; i < COUNT; i++) tsl_fast_free(blocks[i]);
  be(mine);
  for (unsigned i = 0; i < before; i++) tsl_mixed_look(mine, TSL_MIXED_FEW);
  CHECK_EQ(mine->cell_count, totals().live);
  CHECK(mine->cell_count < before);
  state_check();
}

// The owner frees them in a scope, too.
static void a_scope_does_not_matter(void) {
  enum { COUNT = 4000, BYTES = 1024 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  tslab_scope scope;
  epochs_enter(&scope, epochs_open());
  free_all(COUNT, BYTES);
  epochs_leave(&scope);
  CHECK_EQ(mine->cell_count, 0);
  CHECK_EQ(totals().live, 0);
}

static void reallocated_blocks_keep_their_bytes(void) {
  open_homes(MEAN);
  for (unsigned i = 0; i < 2000; i++) {
    char *block = tsl_fast_malloc(1000);
    pattern_write(block, 1000, i);
    block = tslab_realloc(block, 3000);
    CHECK(block != NULL && pattern_is(block, 1000, i, 1000));
    CHECK_GE(tslab_usable_size(block), 3000);
    block = tslab_realloc(block, 500);
    CHECK(block != NULL && pattern_is(block, 1000, i, 500));
    tsl_fast_free(block);
  }
  CHECK_GE(totals().allocations, 1);
  CHECK_EQ(totals().live, 0);
}

static void a_second_free_is_told(void) {
  open_homes(MEAN);
  alloc(4000, 1024);
  uint32_t number = ((struct tsl_samples_row *)TSL_ROW(samples, 1))->site;
  CHECK(number != 0);
  void *sampled = (void *)((struct tsl_samples_row *)TSL_ROW(samples, 1))->address;
  tsl_options.on_error = 2;
  be(other);
  tsl_fast_free(sampled);
  tsl_fast_free(sampled);
  be(mine);
  CHECK_EQ(totals().frees, 1);
  tslab_trim(0);
  state_check();
}

// Who asks in the file is answered at the next tick; who asks for nonsense gets what is possible.
static void the_file_can_ask(void) {
  open_homes(0);
  tsl_report_start();
  struct tsl_control_row *control = TSL_ROW(control, 0);
  control->sample_bytes = 1;
  tick();
  CHECK_EQ(process()->sample_bytes, 4096);
  CHECK_EQ(process()->weight_bytes, 4096);
  control->sample_bytes = 65536;  // the counts so far are weighed by the first
  tick();
  CHECK_EQ(process()->sample_bytes, 4096);
  alloc(4000, 64);
  CHECK_GE(totals().live, 1);
  control->sample_bytes = UINT32_MAX;
  tick();
  CHECK_EQ(process()->sample_bytes, 0);
  CHECK_EQ(process()->weight_bytes, 4096);
  uint64_t taken = totals().allocations;
  free_all(4000, 64);
  alloc(4000, 64);
  alloc(4000, 64);
  // of hot blocks, too: the thread looks up from them seldom
  for (unsigned i = 0; i < 40000; i++) tsl_fast_free(tsl_fast_malloc(16));
  CHECK_EQ(totals().allocations, taken);
  CHECK_EQ(totals().live, totals().allocations - totals().frees);
}

static void without_rows_samples_are_lost_and_counted(void) {
  open_homes(MEAN);
  os_fake_fail_all(OS_FAKE_SHARE_MORE);
  alloc(4000, 1024);
  CHECK_GE(process()->samples_lost, 1);
  free_all(4000, 1024);
  os_fake_recover();
  epochs_check_all_free();
}

static void behind_the_last_row_samples_are_lost(void) {
  open_homes(4096);
  for (unsigned i = 0; i < MOST * 7 / 4; i++) CHECK(tsl_fast_malloc(4096) != NULL);
  CHECK_GE(process()->samples_lost, 1);
  CHECK_EQ(process()->samples_taken, TSL_MOST_SAMPLES - 1);
}

static void a_child_begins_anew(void) {
  open_homes(MEAN);
  alloc(4000, 1024);
  CHECK_GE(totals().live, 1);
  tsl_report_after_fork();
  tsl_sample_after_fork();
  CHECK_EQ(tsl_sample_mean, 0);
  tick();
  tick();
  CHECK_EQ(tsl_sample_mean, MEAN);
  CHECK_EQ(totals().live, 0);
  free_all(2000, 1024);  // the parent's samples, which end unseen
  CHECK_EQ(totals().frees, 0);
  alloc(2000, 1024);
  CHECK_GE(totals().live, 1);
  free_all(2000, 1024);
  CHECK_EQ(totals().live, 0);
}

static void limits_hold(void) {
  enum { LIMIT = 1 << 20 };
  open_homes(MEAN);
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = LIMIT);
  while (tslab_epoch_malloc(epoch, 1000) != NULL)
    CHECK_LE(tsl_epoch_at(tsl_epoch_slot(epoch))->held_bytes, LIMIT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

static void the_secure_build_samples_nothing(void) {
  tsl_options.sample_bytes = MEAN;
  homes_open((size_t)1 << 30, &mine, &other);
  tick();
  CHECK_EQ(tsl_sample_mean, 0);
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
  double taken = (double)process()->samples_taken;
  CHECK(taken <= 1.2 * SECONDS * RATE + FIRST && taken >= 0.8 * SECONDS * RATE);
  double deviation = FASTER * sqrt(points / FASTER);
  CHECK(fabs((double)totals().allocations - points) <= 4 * deviation);
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
  tsl_heap_rest_all(mine);
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
  CHECK_LE(4, mine->store->sample_times);
  CHECK(fabs((double)totals().allocations - expected) <= 4 * deviation);
}
static void sums_of_bounded_samples_of_dense_points_are_right(void) {
  sums_of_bounded_samples_are_right(MEAN);
}
static void sums_of_bounded_samples_of_denser_points_are_right(void) {
  sums_of_bounded_samples_are_right(2 * MEAN);
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
  struct tsl_store *store = mine->store;
  store->points = 1;
  store->points_since_ms = os_fake.now_ms;
  os_fake.now_ms += 333;
  tsl_sample_look(mine);
  CHECK_EQ(store->sample_times, 2);
  CHECK_EQ(store->points, 0);
}

static void a_bound_ends_with_its_cause(void) {
  be_busy(1000);
  CHECK_LE(8, mine->store->sample_times);
  os_fake.now_ms += 1000;
  alloc_hot();
  CHECK_EQ(mine->store->sample_times, 1);
}

static void no_bound_when_none_is_wanted(void) {
  be_busy(0);
  CHECK_EQ(process()->samples_taken, totals().allocations);
}

int main(void) {
  RUN_UNLESS_SECURE(nothing_is_sampled_unasked);
  RUN_UNLESS_SECURE(small_stocks);
  RUN_UNLESS_SECURE(stocks);
  RUN_UNLESS_SECURE(medium_stocks);
  RUN_UNLESS_SECURE(small_bins);
  RUN_UNLESS_SECURE(bins);
  RUN_UNLESS_SECURE(large_bins);
  RUN_UNLESS_SECURE(each_place_of_a_pattern_counts_the_same);
  RUN_UNLESS_SECURE(cells_are_sampled_by_bytes);
  RUN_UNLESS_SECURE(ends_of_cells_are_not_sampled);
  RUN_UNLESS_SECURE(gaps_of_cells_are_not_sampled);
  RUN_UNLESS_SECURE(handfuls_that_go_back_are_not_sampled);
  RUN_UNLESS_SECURE(aligned_blocks_of_epochs_stay_aligned);
  RUN_UNLESS_SECURE(large_blocks_are_sampled);
  RUN_UNLESS_SECURE(a_sample_tells_of_its_block);
  RUN_UNLESS_SECURE(sites_are_told_apart);
  RUN_UNLESS_SECURE(what_the_unwinder_allocates_is_not_unwound);
  RUN_UNLESS_SECURE(strangers_end_samples);
  RUN_UNLESS_SECURE(looks_give_cells_back);
  RUN_UNLESS_SECURE(a_scope_does_not_matter);
  RUN_UNLESS_SECURE(reallocated_blocks_keep_their_bytes);
  RUN_UNLESS_SECURE(a_second_free_is_told);
  RUN_UNLESS_SECURE(the_file_can_ask);
  RUN_UNLESS_SECURE(without_rows_samples_are_lost_and_counted);
  RUN_UNLESS_SECURE(behind_the_last_row_samples_are_lost);
  RUN_UNLESS_SECURE(a_child_begins_anew);
  RUN_UNLESS_SECURE(limits_hold);
  if (TSL_SECURE) RUN(the_secure_build_samples_nothing);
  RUN_UNLESS_SECURE(hot_samples_are_bounded);
  RUN_UNLESS_SECURE(samples_in_cells_are_bounded);
  RUN_UNLESS_SECURE(samples_of_stocks_are_bounded);
  RUN_UNLESS_SECURE(aligned_samples_are_bounded);
  RUN_UNLESS_SECURE(samples_of_large_blocks_are_bounded);
  RUN_UNLESS_SECURE(sums_of_bounded_samples_of_dense_points_are_right);
  RUN_UNLESS_SECURE(sums_of_bounded_samples_of_denser_points_are_right);
  RUN_UNLESS_SECURE(what_a_sample_stands_for_is_rounded_up);
  RUN_UNLESS_SECURE(a_bound_ends_with_its_cause);
  RUN_UNLESS_SECURE(no_bound_when_none_is_wanted);
  return test_status();
}
