#include "tell/process.h"

#include "epochs.h"
#include "memory/purge.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "tellers.h"
#include "upkeep/reports.h"

static void classes_are_told(void) {
  open_homes();
  tsl_report_start();
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    const struct tsl_classes_row *row = TSL_ROW(classes, class);
    CHECK_EQ(row->bytes, tsl_sizeclasses[class].bytes);
    CHECK_EQ(row->slab_bytes, tsl_sizeclasses[class].slab_bytes);
    CHECK_EQ(row->capacity, tsl_sizeclasses[class].capacity);
  }
}

static void the_process_is_told(void) {
  open_homes();
  tsl_report_start();
  os_fake.now_ms = 5000;
  tsl_fast_free(tsl_malloc_large(200000, 1, NULL));
  tsl_report_tick(mine->home);
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_EQ(row->open_bytes, tsl_units_open() << TSL_UNIT_LOG2);
  CHECK_EQ(row->free_bytes, tsl_units_free() << TSL_UNIT_LOG2);
  tsl_purge_all(0);
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  CHECK_GE(row->purges, 1);
  CHECK_EQ(row->purged_bytes, TSL_SECURE ? 262144 + TSL_UNIT_BYTES : 262144);
  CHECK_EQ(row->dirty_bytes, 0);
}

static void the_name_is_told(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/comm", "a name of 15 B.\n"},
      {0},
  };
  os_fake.files = files;
  open_homes();
  tsl_report_start();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK(row != NULL && strcmp(row->name, "a name of 15 B.") == 0);
}

static void large_blocks_are_told_at_once(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  void *block = tsl_malloc_large(200000, 1, NULL);
  CHECK_EQ(row->large_objects, 1);
  CHECK_EQ(row->large_bytes, 262144);
  block = tslab_realloc(block, 100000);
  CHECK(block != NULL);
  CHECK_EQ(row->large_bytes, 131072);
  tsl_fast_free(block);
  CHECK_EQ(row->large_objects, 0);
  CHECK_EQ(row->large_bytes, 0);
  CHECK_EQ(row->large_allocations, 1);
}

// Neither a later report nor what is given back lowers it, and its moment is that of its growth.
static void the_peak_stays(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  uint64_t before = row->peak_held_bytes;
  os_fake.now_ms = 5000;
  void *block = tsl_malloc_large(10u << 20, 1, NULL);
  CHECK_GE(row->peak_held_bytes, before + (10u << 20));
  CHECK_EQ(row->peak_ms, 5000);
  uint64_t peak = row->peak_held_bytes;
  os_fake.now_ms = 6000;
  tsl_fast_free(block);
  tsl_fast_free(tsl_malloc_large(5u << 20, 1, NULL));
  tsl_report_tick(mine->home);
  CHECK_EQ(row->peak_held_bytes, peak);
  CHECK_EQ(row->peak_ms, 5000);
}

static void small_blocks_have_a_peak_too(void) {
  open_homes();
  tsl_report_start();
  alloc_many(1024, 10240);
  os_fake.now_ms = 7000;
  tsl_report_tick(mine->home);
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_GE(row->peak_held_bytes, 10u << 20);
  CHECK_GE((TSL_SECURE ? 14u : 11u) << 20, row->peak_held_bytes);
}

// The first epoch makes the file before it has memory, and may be the last to pass by.
static void a_process_that_waits_tells_what_it_has(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  CHECK(tsl_fast_malloc(100) != NULL);
  epochs_leave(&scope);
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_GE(row->open_bytes, 1);
  CHECK_EQ(row->open_bytes, tsl_units_open() << TSL_UNIT_LOG2);
}

// The helper gives back while no thread of the program reports.
static void what_went_back_in_silence_is_told(void) {
  open_homes();
  tsl_report_start();
  tsl_fast_free(tsl_malloc_large(200000, 1, NULL));
  tsl_report_idle();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  uint64_t before = row->purges;
  tsl_purge_all(0);
  CHECK_EQ(row->purges, before);
  tsl_report_idle();
  CHECK_GE(row->purges, before + 1);
  CHECK_EQ(row->dirty_bytes, 0);
  bool clean;
  tsl_unit_cache_give(tsl_units_take(1, 1, &clean));
  tsl_report_idle();
  CHECK_EQ(row->cached_bytes, TSL_UNIT_BYTES);
}

static void what_the_system_refused_in_silence_is_told(void) {
  open_homes();
  tsl_report_start();
  tsl_fast_free(tsl_malloc_large(200000, 1, NULL));
  tsl_report_idle();
  os_fake_fail_all(OS_FAKE_PURGE);
  tsl_purge_all(0);
  tsl_report_idle();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_GE(row->purges_refused, 1);
  CHECK_GE(row->dirty_bytes, 1);
}

static void refusals_are_counted(void) {
  open_homes();
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = 4096, .first_cell_bytes = TSLAB_NO_CELLS);
  CHECK(tslab_epoch_malloc(epoch, 100) == NULL);
  CHECK(tslab_epoch_malloc(epoch, (size_t)1 << 20) == NULL);
  CHECK_EQ(tsl_counts.limits_refused, 2);
  CHECK_EQ(tsl_counts.memory_refused, 0);
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_fast_malloc((size_t)1 << 27) == NULL);
  CHECK_GE(tsl_counts.memory_refused, 1);
}

static void the_soft_limit_is_told_when_it_changes(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "0::/\n"},
      {"/sys/fs/cgroup/memory.max", "1073741824\n"},
      {NULL, NULL},
  };
  tsl_options.soft_limit = 256 << 20;
  open_homes();
  tsl_report_start();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_EQ(row->soft_limit_bytes, 256 << 20);
  CHECK_EQ(tslab_option_set("soft_limit", "32M"), 0);
  CHECK_EQ(row->soft_limit_bytes, 32 << 20);
  os_fake.files = files;
  CHECK_EQ(tslab_option_set("soft_limit", "cgroup"), 0);
  CHECK_EQ(row->soft_limit_bytes, (1 << 30) / 8 * 7);
  CHECK_EQ(tslab_option_set("soft_limit", "0"), 0);
  CHECK_EQ(row->soft_limit_bytes, 0);
}

int main(void) {
  RUN(classes_are_told);
  RUN(the_process_is_told);
  RUN(the_name_is_told);
  RUN(large_blocks_are_told_at_once);
  RUN(the_peak_stays);
  RUN(small_blocks_have_a_peak_too);
  RUN(a_process_that_waits_tells_what_it_has);
  RUN(what_went_back_in_silence_is_told);
  RUN(what_the_system_refused_in_silence_is_told);
  RUN(refusals_are_counted);
  RUN(the_soft_limit_is_told_when_it_changes);
  return test_status();
}
