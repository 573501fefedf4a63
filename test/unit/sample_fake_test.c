#include "tell/sample.h"

#include <string.h>

#include "bets.h"
#include "samples.h"
#include "upkeep/collect.h"

static void nothing_is_sampled_unasked(void) {
  open_homes(0);
  tsl_report_start();
  alloc(MOST, 256);
  CHECK_EQ(tsl_mirror_tables[TSL_ROWS_sites].ready, 0);
  CHECK_EQ(process()->sample_bytes, 0);
  CHECK_EQ(process()->weight_bytes, 0);
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
  CHECK_EQ(totals().live_bytes, UINT64_C(107) << 20);
  blocks[0] = tslab_realloc(blocks[0], 2 << 20);
  CHECK_EQ(totals().live, 100);
  CHECK_EQ(totals().live_bytes, UINT64_C(101) << 20);
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

// In the memory of its host, and where that was closed.
static void what_a_guest_allocates_has_its_label(void) {
  open_homes(MEAN);
  bets_lose("guest");
  uint32_t label = tsl_label_intern("guest");
  tslab_epoch host = epochs_open();
  bets_come_often(host);
  tslab_epoch_options options = {.size = sizeof options, .parent = host};
  tslab_epoch guest = tslab_epoch_open("guest", &options);
  CHECK(tslab_epoch_malloc(guest, 1 << 20) != NULL);
  const struct tsl_samples_row *sample = TSL_ROW(samples, 1);
  const struct tsl_sites_row *site = TSL_ROW(sites, sample->site);
  CHECK_EQ(sample->epoch, host);
  CHECK_EQ(site->label, label);
  CHECK_EQ(tslab_epoch_close(host).error, 0);
  CHECK(tslab_epoch_malloc(guest, 1 << 20) != NULL);
  sample = TSL_ROW(samples, 2);
  site = TSL_ROW(sites, sample->site);
  CHECK_EQ(sample->epoch, TSLAB_DEFAULT);
  CHECK_EQ(site->label, label);
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

// Two temporaries, one of them just so, and two blocks that lived longer.
static void sites_tell_how_long_their_blocks_lived(void) {
  volatile unsigned times = 5;
  open_homes(MEAN);
  os_fake.now_ms = 1000;
  for (unsigned i = 0; i < times; i++) blocks[i] = one_way();
  tsl_fast_free(blocks[0]);
  os_fake.now_ms += TSL_NUMBER_short_ms - 1;
  tsl_fast_free(blocks[1]);
  os_fake.now_ms += 1;
  tsl_fast_free(blocks[2]);
  os_fake.now_ms += 5000;
  tsl_fast_free(blocks[3]);
  const struct tsl_sites_row *site = TSL_ROW(sites, 1);
  CHECK_EQ(site->frees, 4);
  CHECK_EQ(site->short_frees, 2);
  CHECK_EQ(site->lifetime_ms, 9 + 10 + 5010);
}

// Of each decade the first ms and the last, of the last one what has no end.
static void frees_are_counted_by_decade(void) {
  static const uint64_t lived_ms[] = {
      0, 9, 10, 99, 100, 999, 1000, 9999, 10000, 99999, 100000, 999999, 1000000, UINT64_C(1) << 40};
  enum { COUNT = sizeof lived_ms / sizeof *lived_ms };
  volatile unsigned times = COUNT;
  open_homes(MEAN);
  os_fake.now_ms = 1000;
  for (unsigned i = 0; i < times; i++) blocks[i] = one_way();
  for (unsigned i = 0; i < COUNT; i++) {
    os_fake.now_ms = 1000 + lived_ms[i];
    tsl_fast_free(blocks[i]);
  }
  const struct tsl_sites_row *site = TSL_ROW(sites, 1);
  CHECK_EQ(site->frees, COUNT);
  CHECK_EQ(site->short_frees, 2);
  for (unsigned i = 0; i < TSL_NUMBER_decades; i++) CHECK_EQ(site->frees_by_decade[i], 2);
}

// Each free counts as often as the sample does.
static void lifetimes_are_weighed_as_samples_are(void) {
  open_homes(MEAN);
  blocks[0] = one_way();
  struct tsl_samples_row *sample = TSL_ROW(samples, 1);
  sample->times = 7;
  os_fake.now_ms += 3;
  tsl_fast_free(blocks[0]);
  const struct tsl_sites_row *site = TSL_ROW(sites, 1);
  CHECK_EQ(site->short_frees, 7);
  CHECK_EQ(site->frees_by_decade[0], 7);
  CHECK_EQ(site->lifetime_ms, 21);
}

static void what_the_unwinder_allocates_is_not_unwound(void) {
  open_homes(MEAN);
  mine->home->unwinding = true;
  blocks[0] = one_way();
  mine->home->unwinding = false;
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
  tsl_home_collect(other->home);
  CHECK_EQ(totals().live, 0);
  be(mine);
  CHECK(mine->cell_count != 0);
  epochs_check_all_free();
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
  uint64_t since_ms = process()->sampling_since_ms;
  CHECK_GE(since_ms, 1);
  control->sample_bytes = 65536;  // all counts are weighed by the finest
  tick();
  CHECK_EQ(process()->sampling_since_ms, since_ms);  // all is sampled as before
  CHECK_EQ(process()->sample_bytes, 65536);
  CHECK_EQ(process()->weight_bytes, 4096);
  control->sample_bytes = 4096;
  tick();
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
  CHECK_EQ(process()->sampling_since_ms, 0);
  alloc(4000, 1024);
  CHECK_GE(totals().live, 1);
  tsl_report_after_fork();
  tsl_sample_after_fork();
  CHECK_EQ(tsl_points_mean, 0);
  tick();
  tick();
  CHECK_EQ(tsl_points_mean, MEAN);
  CHECK_GE(process()->sampling_since_ms, 1);
  CHECK_EQ(totals().live, 0);
  free_all(2000, 1024);  // the parent's samples, which end unseen
  CHECK_EQ(totals().frees, 0);
  alloc(2000, 1024);
  CHECK_GE(totals().live, 1);
  free_all(2000, 1024);
  CHECK_EQ(totals().live, 0);
}

static void the_secure_build_samples_nothing(void) {
  tsl_options.sample_bytes = MEAN;
  homes_open((size_t)1 << 30, &mine, &other);
  tick();
  CHECK_EQ(tsl_points_mean, 0);
}

// What is known of call stacks is the parent's; the child's file has no rows of them yet.
static void a_child_notes_known_stacks_anew(void) {
  open_homes(MEAN);
  for (unsigned i = 0; i < 2; i++) {
    alloc(4000, 1024);
    CHECK_GE(totals().allocations, 1);
    if (i != 0) break;
    tsl_report_after_fork();
    tsl_sample_after_fork();
    tick();
    tick();
  }
}

int main(void) {
  RUN_UNLESS_SECURE(a_child_notes_known_stacks_anew);
  RUN_UNLESS_SECURE(nothing_is_sampled_unasked);
  RUN_UNLESS_SECURE(large_blocks_are_sampled);
  RUN_UNLESS_SECURE(a_sample_tells_of_its_block);
  RUN_UNLESS_SECURE(what_a_guest_allocates_has_its_label);
  RUN_UNLESS_SECURE(sites_are_told_apart);
  RUN_UNLESS_SECURE(sites_tell_how_long_their_blocks_lived);
  RUN_UNLESS_SECURE(frees_are_counted_by_decade);
  RUN_UNLESS_SECURE(lifetimes_are_weighed_as_samples_are);
  RUN_UNLESS_SECURE(what_the_unwinder_allocates_is_not_unwound);
  RUN_UNLESS_SECURE(strangers_end_samples);
  RUN_UNLESS_SECURE(reallocated_blocks_keep_their_bytes);
  RUN_UNLESS_SECURE(a_second_free_is_told);
  RUN_UNLESS_SECURE(the_file_can_ask);
  RUN_UNLESS_SECURE(without_rows_samples_are_lost_and_counted);
  RUN_UNLESS_SECURE(behind_the_last_row_samples_are_lost);
  RUN_UNLESS_SECURE(a_child_begins_anew);
  if (TSL_SECURE) RUN(the_secure_build_samples_nothing);
  return test_status();
}
