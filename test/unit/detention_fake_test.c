#include "memory/detention.h"

#include "base/options.h"
#include "capture.h"
#include "memory/growth.h"
#include "memory/large.h"
#include "memory/purge.h"
#include "memory/units.h"
#include "os_fake.h"
#include "test.h"

enum { BYTES = 1 << 18, UNITS = (BYTES >> TSL_UNIT_LOG2) + TSL_SECURE, MANY = 200 };

static void open_region(void) {
  os_fake.limit_bytes = (size_t)1 << 29;
  os_fake.now_ms = 1000;
  CHECK(tsl_region_init());
  tsl_options.detain_ms = 10;
}

static char *alloc(size_t bytes) {
  bool clean;
  char *block = tsl_large_alloc(bytes, 1, 1 << 8 | 0xfe, &clean);
  CHECK(block != NULL);
  memset(block, 'A', bytes);
  return block;
}

static char *detained;
static void read_detained(void) { (void)*(volatile char *)detained; }

static void who_still_uses_it_is_stopped(void) {
  open_region();
  detained = alloc(BYTES);
  tsl_large_free(detained);
  CHECK_EQ(tsl_detention_units(), UNITS);
  int status = capture_child(read_detained);
  CHECK(status != 0);  // sanitizers report the signal and exit
}

static void nobody_gets_the_place_soon(void) {
  open_region();
  char *block = alloc(BYTES);
  tsl_large_free(block);
  for (unsigned i = 0; i < TSL_DETENTION_PLACES - 1; i++) {
    char *other = alloc(BYTES);
    CHECK(other != block);
    tsl_large_free(other);
  }
}

// What comes back reads as zero, and can be used.
static void what_leaves_is_free(void) {
  open_region();
  for (int i = 0; i < MANY; i++) {
    os_fake.now_ms += 10;
    tsl_large_free(alloc(BYTES));
  }
  CHECK_EQ(tsl_detention_units(), TSL_DETENTION_PLACES * UNITS);
  size_t free_units = tsl_units_free();
  tsl_detention_end();
  CHECK_EQ(tsl_detention_units(), 0);
  CHECK_EQ(tsl_units_free(), free_units + TSL_DETENTION_PLACES * UNITS);
}

static void trimming_ends_it(void) {
  open_region();
  tsl_large_free(alloc(BYTES));
  tsl_purge_all(0);
  CHECK_EQ(tsl_detention_units(), 0);
}

static unsigned guards(void) { return (unsigned)os_fake.calls[OS_FAKE_GUARD]; }

// A program that frees many pays for few.
static void time_pays(void) {
  open_region();
  for (int i = 0; i < MANY; i++) tsl_large_free(alloc(BYTES));
  CHECK_EQ(guards(), TSL_DETENTION_PLACES);
  os_fake.now_ms += 9;
  tsl_large_free(alloc(BYTES));
  CHECK_EQ(guards(), TSL_DETENTION_PLACES);
  os_fake.now_ms += 1;
  for (int i = 0; i < MANY; i++) tsl_large_free(alloc(BYTES));
  CHECK_EQ(guards(), TSL_DETENTION_PLACES + 2);  // one more, and one that leaves
}

// Four times the size costs four times as much.
static void size_is_paid(void) {
  open_region();
  for (int i = 0; i < MANY; i++) tsl_large_free(alloc(4 * BYTES));
  CHECK_EQ(guards(), TSL_DETENTION_PLACES / 4);
  os_fake.now_ms += 39;
  tsl_large_free(alloc(4 * BYTES));
  CHECK_EQ(guards(), TSL_DETENTION_PLACES / 4);
  os_fake.now_ms += 1;
  tsl_large_free(alloc(4 * BYTES));
  CHECK_EQ(guards(), TSL_DETENTION_PLACES / 4 + 1);
}

static void none_where_all_memory_may_be_huge(void) {
  tsl_options.thp = TSL_THP_ALWAYS;
  open_region();
  tsl_large_free(alloc(BYTES));
  CHECK_EQ(guards(), 0);
}

static void what_is_large_goes_back_at_once(void) {
  open_region();
  tsl_large_free(alloc((TSL_DETENTION_MOST_UNITS + 1) * TSL_UNIT_BYTES));
  CHECK_EQ(guards(), TSL_SECURE ? 2 : 0);  // behind the block, and away
}

static void what_is_refused_goes_back_at_once(void) {
  open_region();
  os_fake_fail_all(OS_FAKE_GUARD);
  char *block = alloc(BYTES);
  size_t free_units = tsl_units_free();
  tsl_large_free(block);
  CHECK_EQ(tsl_units_free(), free_units + UNITS);
}

static void none_when_the_option_says_so(void) {
  open_region();
  tsl_options.detain_ms = 0;
  tsl_large_free(alloc(BYTES));
  CHECK_EQ(guards(), TSL_SECURE ? 2 : 0);
}

int main(void) {
  RUN(who_still_uses_it_is_stopped);
  RUN(nobody_gets_the_place_soon);
  RUN(what_leaves_is_free);
  RUN(trimming_ends_it);
  RUN_UNLESS_SECURE(time_pays);
  RUN_UNLESS_SECURE(size_is_paid);
  RUN_UNLESS_SECURE(none_where_all_memory_may_be_huge);
  RUN(what_is_large_goes_back_at_once);
  RUN(what_is_refused_goes_back_at_once);
  RUN(none_when_the_option_says_so);
  return test_status();
}
