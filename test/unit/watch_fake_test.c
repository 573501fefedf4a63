#include "tell/watch.h"

#include <string.h>

#include "bets.h"
#include "samples.h"
#include "tell/sample.h"

enum { SOME = 4000, BYTES = 1024, FIRST = 0 };

static uint32_t number_of(const char *label) { return tsl_label_intern(label); }

// An object outlived an epoch of the label.
static void outlive(const char *label) { tsl_watch_add(number_of(label), tsl_sizeclass_of(BYTES)); }

static void open_watched(uint64_t bytes) {
  tsl_options.watch_bytes = bytes;
  open_homes(0);
  tsl_report_start();
  tick();
}

static void open_unasked(void) { open_watched(MEAN); }

static void alloc_in(tslab_epoch epoch, unsigned from, unsigned count) {
  tslab_scope scope;
  tslab_scope_enter(&scope, epoch);
  for (unsigned i = from; i < from + count; i++) {
    blocks[i] = tsl_fast_malloc(BYTES);
    CHECK(blocks[i] != NULL);
  }
  CHECK_EQ(tslab_scope_leave(&scope), 0);
}

static uint64_t live_samples(uint32_t label) {
  uint64_t live = 0;
  for (uint32_t i = 1; i < tsl_mirror_tables[TSL_ROWS_samples].ready; i++) {
    const struct tsl_samples_row *sample = TSL_ROW(samples, i);
    if (sample->site == 0) continue;
    const struct tsl_sites_row *site = TSL_ROW(sites, sample->site);
    live += site->label == label;
  }
  return live;
}

static void pass_ms(uint64_t ms) {
  os_fake.now_ms += ms;
  tick();
}

static void ask_to_hurry(uint32_t number) {
  ((struct tsl_control_row *)TSL_ROW(control, 0))->watch_request = number;
}

static tslab_epoch open_own(const char *label) {
  tslab_epoch_options own = {.size = sizeof own, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open(label, &own);
  CHECK(epoch != TSLAB_NO_EPOCH);
  return epoch;
}

// And so is nothing else: neither the default epoch nor those of other labels.
static void a_label_whose_objects_outlive_is_sampled(void) {
  open_unasked();
  outlive("leaks");
  tick();
  CHECK_EQ(process()->sample_bytes, 0);
  CHECK_EQ(process()->watch_bytes, 4096);
  CHECK_EQ(process()->weight_bytes, 4096);
  alloc(SOME, BYTES);
  alloc_in(open_own("ends"), FIRST, SOME);
  CHECK_EQ(process()->samples_taken, 0);
  alloc_in(open_own("leaks"), FIRST, SOME);
  CHECK_GE(live_samples(number_of("leaks")), 1);
  CHECK_EQ(process()->samples_taken, live_samples(number_of("leaks")));
}

static void a_close_with_a_survivor_begins(void) {
  open_unasked();
  tslab_epoch first = open_own("leaks");
  alloc_in(first, FIRST, 1);
  CHECK_EQ(tslab_epoch_close(first).objects, 1);
  tick();
  CHECK_EQ(process()->watch_bytes, 4096);
  alloc_in(open_own("leaks"), FIRST, SOME);
  CHECK_GE(process()->samples_taken, 1);
}

static void a_close_with_a_large_survivor_begins(void) {
  open_unasked();
  tslab_epoch first = open_own("leaks");
  CHECK(tslab_epoch_malloc(first, 1 << 20) != NULL);
  CHECK_EQ(tslab_epoch_close(first).objects, 1);
  tick();
  tslab_epoch next = open_own("leaks");
  alloc_in(next, FIRST, SOME);
  CHECK_EQ(process()->samples_taken, 0);
  for (unsigned i = 0; i < 5; i++) pass_ms(1000);  // all points are wanted
  CHECK(tslab_epoch_malloc(next, 1 << 20) != NULL);
  CHECK_EQ(process()->samples_taken, 1);
}

static void a_label_whose_objects_end_is_not_watched(void) {
  open_unasked();
  tslab_epoch epoch = open_own("ends");
  alloc_in(epoch, FIRST, 10);
  for (unsigned i = 0; i < 10; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  CHECK(!tsl_watch_waits());
  tick();
  CHECK_EQ(process()->watch_bytes, 0);
}

static void other_classes_are_not_sampled(void) {
  open_unasked();
  tsl_watch_add(number_of("leaks"), tsl_sizeclass_of(64));
  tick();
  tslab_epoch epoch = open_own("leaks");
  alloc_in(epoch, FIRST, SOME);
  CHECK_EQ(process()->samples_taken, 0);
  CHECK_GE(tsl_heap_current->home->own->points.passed, 8);
  for (unsigned i = 0; i < 20 * SOME; i++) tslab_free(tslab_epoch_malloc(epoch, 64));
  CHECK_GE(process()->samples_taken, 1);
}

// 64 of them cost what a sample costs, for as long as they come, and four samples a second are
// wanted.
static void what_is_passed_bounds_the_rate(void) {
  open_unasked();
  tsl_options.sample_rate = 1;
  tsl_watch_add(number_of("leaks"), tsl_sizeclass_of(64));
  tick();
  tslab_epoch epoch = open_own("leaks");
  for (unsigned i = 0; i < 100; i++) {
    alloc_in(epoch, FIRST, SOME);
    for (unsigned j = 0; j < SOME; j++) tsl_fast_free(blocks[j]);
  }
  const struct tsl_points *points = &tsl_heap_current->home->own->points;
  CHECK_EQ(process()->samples_taken, 0);
  CHECK_LE(100, points->times);
  for (unsigned i = 0; i < 6; i++) pass_ms(1000);
  CHECK_EQ(points->times, 1);
}

static void look(struct tsl_heap *heap, unsigned times) {
  for (unsigned i = 0; i < times; i++) {
    os_fake.now_ms += 100;
    tsl_watch_look(tsl_part_of(heap));
  }
}

// Of shared memory no close counts what lives: what is there at each of many looks does. What comes
// and goes is not. Leaving the scope is a look, too.
static void in_a_shared_epoch_looks_tell(void) {
  open_unasked();
  uint32_t label = number_of("shares");
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++)
    tsl_history_closed(label, &(struct tsl_closed){.held_bytes = 4096});
  CHECK(tsl_history_shares(label));
  tslab_epoch epoch = tslab_epoch_open("shares", NULL);
  alloc_in(epoch, FIRST, 10);
  struct tsl_heap *heap = tsl_heap_at(tsl_heap_current->home->own->shared);
  look(heap, TSL_WATCH_LOOKS - 2);
  for (unsigned i = 0; i < 10; i++) tsl_fast_free(blocks[i]);
  look(heap, TSL_WATCH_LOOKS);
  CHECK(!tsl_watch_waits());
  alloc_in(epoch, FIRST, 1);
  for (unsigned i = 0; i < 2 * TSL_WATCH_LOOKS; i++) tsl_watch_look(tsl_part_of(heap));
  CHECK(!tsl_watch_waits());  // within one moment they are one
  look(heap, 2 * TSL_WATCH_LOOKS);
  CHECK(tsl_watch_has(heap, tsl_sizeclass_of(BYTES)) && !tsl_watch_has(heap, tsl_sizeclass_of(64)));
  tick();
  alloc_in(epoch, FIRST, SOME);
  CHECK_GE(live_samples(label), 1);
}

static void guests_are_sampled_in_their_host(void) {
  open_unasked();
  bets_lose("guest");
  outlive("guest");
  tick();
  tslab_epoch host = open_own("host");
  tslab_epoch_options below = {.size = sizeof below, .parent = host};
  tslab_epoch guest = tslab_epoch_open("guest", &below);
  alloc_in(guest, FIRST, SOME);
  CHECK_GE(live_samples(number_of("guest")), 1);
}

// With every 64 samples that live the distance doubles: 32 MB at a byte in 4 KiB would be 7,000.
static void the_more_samples_live_the_fewer_are_taken(void) {
  open_unasked();
  tsl_options.sample_rate = 0;
  outlive("leaks");
  tick();
  tslab_epoch epoch = open_own("leaks");
  for (unsigned i = 0; i < 8; i++) alloc_in(epoch, i * SOME, SOME);
  uint64_t live = live_samples(number_of("leaks"));
  CHECK_GE(live, 3 * TSL_WATCH_MANY);
  CHECK_LE(live, 8 * TSL_WATCH_MANY);
  // By weight they stand for as many as the finest mean would take; the last ones for the most.
  double all = 8 * SOME * (1 - exp(-(double)BYTES / TSL_POINTS_FINEST));
  CHECK(fabs((double)totals().live - all) < all / 2);
  for (unsigned i = 0; i < 8 * SOME; i++) tsl_fast_free(blocks[i]);
  CHECK_EQ(totals().live, 0);
  CHECK_EQ(tsl_watch_mean(tsl_heap_at(tsl_heap_current->home->family)), MEAN);
  alloc_in(epoch, FIRST, SOME);
  CHECK_GE(live_samples(number_of("leaks")), TSL_WATCH_MANY);
}

// All is sampled then, and what lives of it does not make the watch's samples fewer.
static void what_was_asked_for_counts(void) {
  open_unasked();
  outlive("leaks");
  tick();
  CHECK_EQ(process()->watch_bytes, MEAN);
  struct tsl_control_row *control = TSL_ROW(control, 0);
  control->sample_bytes = MEAN;
  tick();
  tslab_epoch epoch = open_own("ends");
  alloc_in(epoch, FIRST, SOME);
  check_share(totals().live, SOME, BYTES);
  CHECK_EQ(tsl_watch_mean(tsl_heap_at(tsl_heap_current->home->family)), 0);
  tslab_epoch leaks = open_own("leaks");
  alloc_in(leaks, SOME, SOME);
  CHECK_GE(live_samples(number_of("leaks")), 2 * TSL_WATCH_MANY);
  control->sample_bytes = 0;
  tick();
  CHECK_EQ(tsl_watch_mean(tsl_heap_at(tsl_heap_current->home->family)), MEAN);
  control->sample_bytes = TSL_NUMBER_no_samples;
  tick();
  CHECK_EQ(process()->watch_bytes, 0);
  uint64_t taken = process()->samples_taken;
  alloc_in(leaks, 2 * SOME, SOME);
  CHECK_EQ(process()->samples_taken, taken);
}

// A reader must not take samples for all that lives where some of it was allocated before.
static void since_when_it_is_so_is_told(void) {
  open_unasked();
  CHECK_EQ(process()->sampling_since_ms, 0);
  outlive("leaks");
  tick();
  CHECK_EQ(process()->sampling_since_ms, os_fake.now_ms);
  struct tsl_control_row *control = TSL_ROW(control, 0);
  uint32_t asked[] = {MEAN, 0, TSL_NUMBER_no_samples};
  for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
    control->sample_bytes = asked[i];
    tick();
    uint64_t since_ms = os_fake.now_ms;
    tick();
    CHECK_EQ(process()->sampling_since_ms, since_ms);
  }
}

// It would be met sooner, by chance.
static void below_a_limit_nothing_is_sampled(void) {
  open_unasked();
  outlive("leaks");
  tick();
  tslab_epoch_options limits = {.size = sizeof limits, .hard_limit_bytes = 1 << 30};
  tslab_epoch limited = tslab_epoch_open("leaks", &limits);
  alloc_in(limited, FIRST, SOME);
  tslab_epoch_options below = {.size = sizeof below, .parent = limited};
  alloc_in(tslab_epoch_open("leaks", &below), FIRST, SOME);
  CHECK_EQ(process()->samples_taken, 0);
  CHECK_EQ(tslab_epoch_set_limits(limited, 0, 0), 0);
  alloc_in(limited, FIRST, SOME);
  CHECK_GE(process()->samples_taken, 1);
}

// A thread takes turns between heaps whose points lie differently far apart: 24 are met of those
// that lie 16 MiB apart, with a deviation of 5.
static void heaps_in_turn_are_not_biased(void) {
  enum { LOOKS = 400000, FAR = 4096 };
  open_unasked();
  outlive("leaks");
  tick();
  alloc_in(open_own("leaks"), FIRST, 1);
  struct tsl_heap *rare = tsl_heap_at(mine->home->family), *often = mine;
  rare->sample_apart = MEAN * (uint64_t)FAR;
  often->sample_apart = MEAN;
  unsigned met = 0;
  for (unsigned i = 0; i < LOOKS; i++) {
    met += tsl_points_within(rare, BYTES) != SIZE_MAX;
    tsl_points_within(often, BYTES);
  }
  CHECK_GE(met, 5);
  CHECK_LE(met, 48);
}

// Blocks that hold ten points, each ms. Returns the samples a second.
static double samples_of_ms(tslab_epoch epoch, unsigned ms) {
  enum { EACH = 10 * MEAN / BYTES };
  uint64_t before = process()->samples_taken;
  for (unsigned i = 0; i < ms; i++) {
    os_fake.now_ms++;
    alloc_in(epoch, FIRST, EACH);
    for (unsigned j = 0; j < EACH; j++) tsl_fast_free(blocks[j]);
  }
  return (double)(process()->samples_taken - before) * 1000 / ms;
}

// A 25th of 200; a few more while the rate is not known. They stand for all.
static void eight_samples_a_second_are_taken(void) {
  enum { MS = 40000, BLOCKS = 10 * MEAN / BYTES * MS };
  open_unasked();
  outlive("leaks");
  tick();
  double taken = samples_of_ms(open_own("leaks"), MS);
  CHECK(taken >= 6 && taken <= 12);
  double expected = BLOCKS * (1 - exp(-(double)BYTES / TSL_POINTS_FINEST));
  CHECK(fabs((double)totals().allocations - expected) <= expected * 4 / sqrt(taken * MS / 1000));
}

// For a minute; then as before. Each request has a number of its own.
static void a_request_hurries(void) {
  open_unasked();
  outlive("leaks");
  tick();
  tslab_epoch epoch = open_own("leaks");
  samples_of_ms(epoch, 5000);
  for (uint32_t number = 1; number <= 2; number++) {
    ask_to_hurry(number);
    tick();
    double hurried = samples_of_ms(epoch, 10000);
    CHECK(hurried >= 600 && hurried <= 1000);
    pass_ms(TSL_SAMPLE_HURRY_MS);
    samples_of_ms(epoch, 2000);
    CHECK(samples_of_ms(epoch, 10000) <= 13);
  }
}

// A thread that leaves scopes, allocates little and passes no tick follows, too.
static void a_thread_hurries_as_it_leaves(void) {
  open_unasked();
  outlive("leaks");
  tick();
  tslab_epoch epoch = open_own("leaks");
  samples_of_ms(epoch, 5000);
  struct tsl_home *home = tsl_heap_current->home;
  uint64_t told_ms = home->told_ms;
  CHECK_LE(500, home->own->points.times);
  ask_to_hurry(1);
  for (unsigned i = 0; i < 200 && home->own->points.times != 1; i++) {
    os_fake.now_ms++;
    alloc_in(epoch, FIRST, 1);
    tsl_fast_free(blocks[0]);
  }
  CHECK_EQ(home->own->points.times, 1);
  CHECK_EQ(home->told_ms, told_ms);
}

// No rate is known yet; later a second without a sample may be chance.
static void few_points_are_drawn_at_first(void) {
  open_unasked();
  outlive("leaks");
  tick();
  tick();
  const struct tsl_points *points = &tsl_heap_current->home->own->points;
  CHECK_EQ(points->times, 64);
  for (uint32_t left = 16; left >= 1; left /= 4) {
    pass_ms(1000);
    CHECK_EQ(points->times, left);
  }
}

// It leaves no scope, and takes hot blocks alone.
static void a_thread_that_never_refills_hurries(void) {
  enum { MANY = 1 << 21, IN_A_MS = 1000 };
  open_unasked();
  outlive("leaks");
  tick();
  tslab_scope scope;
  tslab_scope_enter(&scope, open_own("leaks"));
  ask_to_hurry(1);
  for (unsigned i = 0; i < MANY; i++) {
    if (i % IN_A_MS == 0) os_fake.now_ms++;
    tsl_fast_free(tsl_fast_malloc(64));
  }
  CHECK_EQ(tsl_heap_current->home->own->points.pace, TSL_POINTS_HURRIED);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
}

// What was counted for the one says nothing of the other.
static void who_asks_and_who_watches_count_apart(void) {
  open_unasked();
  outlive("leaks");
  tick();
  tslab_epoch epoch = open_own("leaks");
  const struct tsl_points *points = &tsl_heap_current->home->own->points;
  samples_of_ms(epoch, 5000);
  CHECK_LE(500, points->times);
  ((struct tsl_control_row *)TSL_ROW(control, 0))->sample_bytes = 64 * MEAN;
  tick();
  CHECK_EQ(points->times, 1);
  CHECK(samples_of_ms(epoch, 5000) >= 120);
  ((struct tsl_control_row *)TSL_ROW(control, 0))->sample_bytes = 0;
  tick();
  CHECK_EQ(points->pace, TSL_POINTS_CALM);
  samples_of_ms(epoch, 2000);
  CHECK(samples_of_ms(epoch, 10000) <= 13);
}

static void the_option_turns_it_off(void) {
  open_watched(0);
  outlive("leaks");
  tick();
  CHECK_EQ(process()->watch_bytes, 0);
  alloc_in(open_own("leaks"), FIRST, SOME);
  CHECK_EQ(process()->samples_taken, 0);
}

static void a_child_counts_anew(void) {
  open_unasked();
  outlive("leaks");
  tick();
  tslab_epoch epoch = open_own("leaks");
  ask_to_hurry(1);
  tick();
  alloc_in(epoch, FIRST, 2 * SOME);
  tsl_report_after_fork();
  tsl_sample_after_fork();
  CHECK_EQ(tsl_watch_bytes, 0);
  tsl_report_start();
  tick();
  CHECK_EQ(tsl_watch_bytes, 4096);
  CHECK_EQ(tsl_heap_current->home->own->points.pace, TSL_POINTS_CALM);
  CHECK_GE(process()->sampling_since_ms, 1);                         // none of what it inherited
  for (unsigned i = 0; i < 2 * SOME; i++) tsl_fast_free(blocks[i]);  // the parent's samples
  alloc_in(epoch, FIRST, SOME);
  CHECK_GE(live_samples(number_of("leaks")), 1);
}

static void the_secure_build_watches_nothing(void) {
  open_unasked();
  outlive("leaks");
  tick();
  CHECK_EQ(process()->watch_bytes, 0);
}

int main(void) {
  RUN_UNLESS_SECURE(a_label_whose_objects_outlive_is_sampled);
  RUN_UNLESS_SECURE(a_close_with_a_survivor_begins);
  RUN_UNLESS_SECURE(a_close_with_a_large_survivor_begins);
  RUN(a_label_whose_objects_end_is_not_watched);
  RUN_UNLESS_SECURE(other_classes_are_not_sampled);
  RUN_UNLESS_SECURE(what_is_passed_bounds_the_rate);
  RUN_UNLESS_SECURE(in_a_shared_epoch_looks_tell);
  RUN_UNLESS_SECURE(guests_are_sampled_in_their_host);
  RUN_UNLESS_SECURE(the_more_samples_live_the_fewer_are_taken);
  RUN_UNLESS_SECURE(what_was_asked_for_counts);
  RUN_UNLESS_SECURE(since_when_it_is_so_is_told);
  RUN_UNLESS_SECURE(below_a_limit_nothing_is_sampled);
  RUN_UNLESS_SECURE(heaps_in_turn_are_not_biased);
  RUN_UNLESS_SECURE(eight_samples_a_second_are_taken);
  RUN_UNLESS_SECURE(a_request_hurries);
  RUN_UNLESS_SECURE(a_thread_hurries_as_it_leaves);
  RUN_UNLESS_SECURE(few_points_are_drawn_at_first);
  RUN_UNLESS_SECURE(a_thread_that_never_refills_hurries);
  RUN_UNLESS_SECURE(who_asks_and_who_watches_count_apart);
  RUN_UNLESS_SECURE(the_option_turns_it_off);
  RUN_UNLESS_SECURE(a_child_counts_anew);
  if (TSL_SECURE) RUN(the_secure_build_watches_nothing);
  return test_status();
}
