#include "heap/home_units.h"

#include "base/options.h"
#include "memory/growth.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "os_fake.h"
#include "state.h"
#include "upkeep/pool.h"

enum { KEPT = 4 };

static struct tsl_home *home;

static void open_home(void) {
  os_fake.limit_bytes = (size_t)1 << 26;
  tsl_options.cache_units = KEPT;
  CHECK(tsl_region_init());
  home = tsl_home_take();
  tsl_heap_current = &home->heap;
}

// A home keeps as many as the option allows; further ones are everybody's.
static void a_home_keeps_a_few(void) {
  open_home();
  tsl_unit units[KEPT + 2];
  for (unsigned i = 0; i < KEPT + 2; i++) units[i] = tsl_home_units_take(home, 1);
  for (unsigned i = 0; i < KEPT; i++) CHECK(!tsl_home_units_give(units[i], 1));
  CHECK_EQ(home->unit_count, KEPT);
  CHECK(tsl_home_units_give(units[KEPT], 1));
  CHECK(tsl_home_units_give(units[KEPT + 1], 1));
  CHECK_EQ(tsl_unit_cache_units(), 2);
  for (unsigned i = KEPT; i != 0; i--) CHECK_EQ(tsl_home_units_take(home, 1), units[i - 1]);
  CHECK_EQ(home->unit_low, 0);
  CHECK_NE(tsl_home_units_take(home, 1), 0);
  CHECK_EQ(tsl_unit_cache_units(), 1);
}

static void several_units_are_neighbours_and_not_kept(void) {
  open_home();
  size_t before = tsl_units_free();
  tsl_unit first = tsl_home_units_take(home, 3);
  CHECK_NE(first, 0);
  CHECK(tsl_home_units_give(first, 3));
  CHECK_EQ(home->unit_count, 0);
  CHECK_GE(tsl_units_free(), before);
}

static bool always(const void *context, size_t offset, size_t page_bytes) {
  (void)context, (void)offset, (void)page_bytes;
  return true;
}

// Once; then it is like any other.
static void a_unit_without_all_its_pages_is_taken_last(void) {
  open_home();
  tsl_unit holed = tsl_home_units_take(home, 1), other = tsl_home_units_take(home, 1);
  size_t dirty = tsl_units_dirty();
  CHECK_NE(tsl_purge_dead((uintptr_t)tsl_unit_address(holed), TSL_UNIT_BYTES, always, NULL).bytes,
           0);
  CHECK(tsl_home_units_give(holed, 1));
  CHECK_EQ(home->unit_count, 0);
  CHECK_EQ(tsl_unit_cache_units(), 0);
  CHECK_EQ(tsl_units_dirty(), dirty + 1);
  CHECK(!tsl_home_units_give(other, 1));
  CHECK_EQ(tsl_home_units_take(home, 1), other);
  CHECK_EQ(tsl_home_units_take(home, 1), holed);
  CHECK(!tsl_home_units_give(holed, 1));
}

static void a_unit_of_which_no_page_went_back_is_like_any_other(void) {
  open_home();
  tsl_unit unit = tsl_home_units_take(home, 1);
  os_fake_fail_next(OS_FAKE_PURGE);
  CHECK_EQ(tsl_purge_dead((uintptr_t)tsl_unit_address(unit), TSL_UNIT_BYTES, always, NULL).bytes,
           0);
  CHECK(!tsl_home_units_give(unit, 1));
}

static void what_is_trimmed_is_everybodys(void) {
  open_home();
  tsl_unit units[KEPT];
  for (unsigned i = 0; i < KEPT; i++) units[i] = tsl_home_units_take(home, 1);
  for (unsigned i = 0; i < KEPT; i++) tsl_home_units_give(units[i], 1);
  tsl_home_units_trim(home, 1);
  CHECK_EQ(home->unit_count, 1);
  CHECK_EQ(home->unit_low, 1);
  CHECK_EQ(tsl_unit_cache_units(), KEPT - 1);
  tsl_home_units_trim(home, 0);
  CHECK_EQ(tsl_unit_cache_units(), KEPT);
}

static void threads_without_a_heap_keep_nothing(void) {
  open_home();
  tsl_unit unit = tsl_home_units_take(home, 1);
  tsl_heap_current = &tsl_home_empty.heap;
  CHECK(tsl_home_units_give(unit, 1));
  tsl_home_units_trim(&tsl_home_empty, 0);
  CHECK_EQ(tsl_unit_cache_units(), 1);
}

// Each unit counts where it came from: the system, the home, the cache of all, the segments.
static void sources_are_counted(void) {
  open_home();
  const struct tsl_unit_tally *taken = &home->own->taken;
  tsl_unit unit = tsl_home_units_take(home, 1), three = tsl_home_units_take(home, 3);
  CHECK_EQ(taken->fresh, 4);
  CHECK(!tsl_home_units_give(unit, 1));
  CHECK_EQ(tsl_home_units_take(home, 1), unit);
  CHECK_EQ(taken->kept, 1);
  tsl_unit_cache_give(unit);
  CHECK_EQ(tsl_home_units_take(home, 1), unit);
  CHECK_EQ(taken->shared, 1);
  CHECK(tsl_home_units_give(three, 3));
  CHECK_EQ(tsl_home_units_take(home, 3), three);
  CHECK_EQ(taken->reused, 3);
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_home_units_take(home, 1) != 0) continue;
  uint64_t all = taken->fresh + taken->reused;
  CHECK_EQ(tsl_home_units_take(home, 1), 0);
  CHECK_EQ(taken->fresh + taken->reused, all);
}

static void without_memory_there_are_none(void) {
  open_home();
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_home_units_take(home, 1) != 0) continue;
  CHECK_EQ(tsl_home_units_take(home, 1), 0);
  CHECK_EQ(tsl_home_units_take(home, 2), 0);
}

int main(void) {
  RUN(a_home_keeps_a_few);
  RUN(several_units_are_neighbours_and_not_kept);
  RUN(a_unit_without_all_its_pages_is_taken_last);
  RUN(a_unit_of_which_no_page_went_back_is_like_any_other);
  RUN(what_is_trimmed_is_everybodys);
  RUN(threads_without_a_heap_keep_nothing);
  RUN(sources_are_counted);
  RUN(without_memory_there_are_none);
  return test_status();
}
