#include "memory/kept.h"

#include "memory/growth.h"
#include "memory/units.h"
#include "os_fake.h"
#include "slab/sizeclass.h"
#include "test.h"

static void open_region(void) {
  os_fake.limit_bytes = (size_t)1 << 28;
  CHECK(tsl_region_init());
  CHECK(tsl_region_grow(1));
}

static char *first_unit(void) { return (char *)tsl_unit_address(tsl_region.first_unit); }

// Nobody pays for the bits before.
static void memory_comes_with_the_first(void) {
  open_region();
  size_t committed = os_fake.committed_bytes;
  os_fake_fail_next(OS_FAKE_COMMIT);
  CHECK(!tsl_kept_begin());
  CHECK_EQ(os_fake.committed_bytes, committed);
  CHECK(tsl_kept_begin());
  CHECK(os_fake.committed_bytes > committed);
  committed = os_fake.committed_bytes;
  CHECK(tsl_kept_begin());
  CHECK_EQ(os_fake.committed_bytes, committed);
}

static void it_grows_with_the_units(void) {
  open_region();
  CHECK(tsl_kept_begin());
  CHECK(tsl_region_grow(TSL_GROWTH_UNITS));
  char *last = (char *)tsl_unit_address(tsl_region.units) - TSL_BLOCK_ALIGNMENT;
  CHECK(!tsl_kept_has(last));
  tsl_kept_set(last);
  CHECK(tsl_kept_has(last));
}

// Wherever the system refuses, the units stay closed; the bits come last.
static void without_bits_there_are_no_units(void) {
  open_region();
  CHECK(tsl_kept_begin());
  size_t units = tsl_region.units, committed = os_fake.committed_bytes;
  uint64_t calls = 0;
  for (uint64_t at = 1;; at++) {
    os_fake.failures[OS_FAKE_COMMIT].from = os_fake.calls[OS_FAKE_COMMIT] + at;
    if (tsl_region_grow(TSL_GROWTH_UNITS)) break;
    CHECK_EQ(tsl_region.units, units);
    CHECK_EQ(os_fake.committed_bytes, committed);
    calls = at;
  }
  os_fake_recover();
  CHECK_GE(calls, 2);
  CHECK(tsl_region.units > units);
  CHECK(!tsl_kept_has((void *)(tsl_unit_address(tsl_region.units) - TSL_BLOCK_ALIGNMENT)));
}

static void each_granule_has_a_bit(void) {
  open_region();
  CHECK(tsl_kept_begin());
  char *start = first_unit();
  for (size_t at = 0; at < TSL_UNIT_BYTES; at += TSL_BLOCK_ALIGNMENT) {
    CHECK(!tsl_kept_has(start + at));
    tsl_kept_set(start + at);
    CHECK(tsl_kept_has(start + at));
    CHECK(!tsl_kept_has(start + at + TSL_BLOCK_ALIGNMENT));
    tsl_kept_set(start + at);
  }
  for (size_t at = 0; at < TSL_UNIT_BYTES; at += 2 * TSL_BLOCK_ALIGNMENT)
    tsl_kept_clear(start + at);
  for (size_t at = 0; at < TSL_UNIT_BYTES; at += TSL_BLOCK_ALIGNMENT)
    CHECK_EQ(tsl_kept_has(start + at), at / TSL_BLOCK_ALIGNMENT % 2);
}

static void any_looks_at_nothing_else(void) {
  open_region();
  CHECK(tsl_kept_begin());
  char *start = first_unit();
  tsl_kept_set(start + 4096);
  CHECK(!tsl_kept_any((uintptr_t)start, 4096));
  CHECK(tsl_kept_any((uintptr_t)start, 8192));
  CHECK(tsl_kept_any((uintptr_t)start + 4096, 4096));
  CHECK(!tsl_kept_any((uintptr_t)start + 8192, 4096));
}

static void eight_are_taken_at_once(void) {
  open_region();
  CHECK(tsl_kept_begin());
  char *start = first_unit();
  CHECK_EQ(tsl_kept_take((uintptr_t)start), 0);
  tsl_kept_set(start);
  tsl_kept_set(start + 48);
  tsl_kept_set(start + 128);
  CHECK_EQ(tsl_kept_take((uintptr_t)start), 1 | 1 << 3);
  CHECK_EQ(tsl_kept_take((uintptr_t)start), 0);
  CHECK(tsl_kept_has(start + 128));
}

int main(void) {
  RUN(memory_comes_with_the_first);
  RUN(it_grows_with_the_units);
  RUN(without_bits_there_are_no_units);
  RUN(each_granule_has_a_bit);
  RUN(any_looks_at_nothing_else);
  RUN(eight_are_taken_at_once);
  return test_status();
}
