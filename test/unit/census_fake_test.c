#include "observe/census.h"

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "epochs.h"
#include "heap/home_units.h"
#include "heap/part.h"
#include "heap/rest.h"
#include "homes.h"
#include "takes.h"

enum { MOST_LIVE = 500, STEPS = 4000, CHECK_EVERY = 200, EPOCHS = 3 };

static struct tsl_heap *mine, *other;
static void *live[MOST_LIVE];
static unsigned live_count;

static void open_homes(void) { homes_open((size_t)1 << 28, &mine, &other); }

static void check_sum(const struct tsl_census *c) {
  size_t parts = c->live_bytes + c->hot_bytes + c->free_bytes + c->cached_bytes + c->dirty_bytes +
                 c->metadata_bytes;
  CHECK_EQ(c->resident_bytes, parts - c->untouched_bytes);
}

static void nothing_before_the_first_block(void) {
  struct tsl_census census;
  tsl_census_take(&census);
  CHECK_EQ(census.resident_bytes, 0);
  CHECK_EQ(census.live_objects, 0);
}

static void large_blocks_are_resident_where_they_were_touched(void) {
  struct tsl_census census;
  open_homes();
  char *block = tsl_malloc_large(1 << 20, 1, NULL);
  memset(block, 1, 1 << 18);
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, 1);
  CHECK_EQ(census.large_bytes, 1 << 20);
  CHECK_EQ(census.untouched_bytes, (1 << 20) - (1 << 18));
  check_sum(&census);
  tsl_fast_free(block);
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, 0);
  CHECK_EQ(census.dirty_bytes + census.cached_bytes, TSL_SECURE ? 0 : 1 << 18);
  check_sum(&census);
}

// However many parts their home has.
static void cached_units_are_counted_once(void) {
  struct tsl_census census;
  open_homes();
  void *block = tsl_malloc_large(4 * TSL_UNIT_BYTES, 1, NULL);
  memset(block, 1, 4 * TSL_UNIT_BYTES);
  tsl_fast_free(block);
  tsl_unit units[] = {tsl_home_units_take(mine->home, 1), tsl_home_units_take(mine->home, 1)};
  for (int i = 0; i < 2; i++) CHECK(!tsl_home_units_give(units[i], 1));
  CHECK(tsl_part_take(mine->home, tsl_epoch_slot(epochs_open())) != NULL);
  tsl_census_take(&census);
  CHECK_EQ(census.cached_bytes, 2 * TSL_UNIT_BYTES);
  check_sum(&census);
}

static void freed_blocks_are_hot_or_free(void) {
  struct tsl_census census;
  open_homes();
  for (live_count = 0; live_count < 300; live_count++) {
    live[live_count] = tsl_fast_malloc(500);
    memset(live[live_count], 1, 500);
  }
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, 300);
  CHECK_EQ(census.live_bytes, 300 * 512);
  check_sum(&census);
  while (live_count != 0) tsl_fast_free(live[--live_count]);
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, 0);
  CHECK_EQ(census.live_bytes, 0);
  CHECK_GE(census.hot_bytes + census.free_bytes + census.cached_bytes + census.dirty_bytes,
           300 * 512);
  check_sum(&census);
}

static void *allocate(uint64_t *seed, const tslab_epoch *epochs) {
  unsigned kind = test_random_below(seed, 30), at = test_random_below(seed, EPOCHS + 1);
  size_t bytes = kind == 0 ? 50000 + test_random_below(seed, 100000)
                           : 1 + test_random_below(seed, kind < 5 ? 9000 : 500);
  void *block = at == EPOCHS ? tsl_fast_malloc(bytes) : tslab_epoch_malloc(epochs[at], bytes);
  CHECK(block != NULL);
  memset(block, 1, bytes);
  return block;
}

static void check_live(void) {
  struct tsl_census census;
  size_t bytes = 0;
  for (unsigned i = 0; i < live_count; i++) bytes += takes_of(live[i]);
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, live_count);
  CHECK_EQ(census.live_bytes, bytes);
  check_sum(&census);
}

// By two threads, in cells and slabs, freed where they were allocated and elsewhere.
static void what_lives_is_counted(void) {
  uint64_t seed = 3;
  tslab_epoch epochs[EPOCHS];
  open_homes();
  for (unsigned i = 0; i < EPOCHS; i++)
    epochs[i] = EPOCHS_OPEN(.first_cell_bytes = i == 0 ? TSLAB_NO_CELLS : 0);
  for (unsigned step = 0; step < STEPS; step++) {
    tsl_heap_current = test_random_below(&seed, 3) == 0 ? other : mine;
    if (live_count < MOST_LIVE && test_random_below(&seed, 2) == 0) {
      live[live_count++] = allocate(&seed, epochs);
    } else if (live_count != 0) {
      unsigned i = test_random_below(&seed, live_count);
      tsl_fast_free(live[i]);
      live[i] = live[--live_count];
    }
    if (step % CHECK_EVERY == 0) check_live();
    if (step == STEPS / 2) CHECK_EQ(tslab_epoch_close(epochs[1]).error, 0);
    if (step == STEPS / 2) epochs[1] = epochs_open();
  }
}

// What another thread does meanwhile is put into the map by hand: here a slab whose first unit had
// no entry yet when the walk looked. The walk lands on the next one, whose own record says nothing.
static void a_slab_that_opens_under_the_walk_is_passed_over(void) {
  struct tsl_census census;
  enum { OPENING_BYTES = 20000, BEHIND_BYTES = 24000 };
  open_homes();
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[takes_class(OPENING_BYTES)];
  tsl_unit first = (tsl_unit)tsl_unit_of(tsl_fast_malloc(OPENING_BYTES)) & ~(sizeclass->units - 1u);
  for (unsigned i = 1; i < sizeclass->capacity; i++) tsl_fast_malloc(OPENING_BYTES);  // none is hot
  void *behind = tsl_fast_malloc(BEHIND_BYTES);
  CHECK_EQ(tsl_unit_of(behind) & ~(sizeclass->units - 1u), first + sizeclass->units);
  tsl_store_relaxed(tsl_map_entry(first), 0);
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, 1);
  CHECK_EQ(census.live_bytes, takes_of(behind));
  check_sum(&census);
}

// Their slab was not there yet when the walk passed.
static void hot_blocks_that_no_walk_saw_are_not_subtracted(void) {
  struct tsl_census census;
  enum { HOT_BYTES = 500, LARGE_BYTES = 1 << 20 };
  open_homes();
  void *large = tsl_malloc_large(LARGE_BYTES, 1, NULL), *hot = tsl_fast_malloc(HOT_BYTES);
  tsl_fast_free(hot);
  tsl_store_relaxed(tsl_map_entry(tsl_unit_of(hot)), 0);
  tsl_census_take(&census);
  CHECK_EQ(census.live_objects, 1);
  CHECK_EQ(census.live_bytes, takes_of(large));
  CHECK_GE(census.hot_bytes, takes(HOT_BYTES));
  check_sum(&census);
}

static const void *rests_at;

// As the helper does with the home of a thread that ended, once the walk has passed its slabs.
static void rest_once(const void *address) {
  if (address != rests_at) return;
  rests_at = NULL;
  tsl_home_rest_all(mine->home);
}

static void blocks_that_leave_their_bin_under_the_walk_are_not_live(void) {
  struct tsl_census census;
  enum { COUNT = 30, LARGE_BYTES = 1 << 20 };
  open_homes();
  for (unsigned i = 0; i < COUNT; i++) live[i] = tsl_fast_malloc(500);
  void *behind = tsl_malloc_large(LARGE_BYTES, 1, NULL);
  CHECK((uintptr_t)behind > (uintptr_t)live[0]);
  for (unsigned i = 0; i < COUNT; i++) tsl_fast_free(live[i]);
  rests_at = behind;
  os_fake.at_resident = rest_once;
  tsl_census_take(&census);
  CHECK(rests_at == NULL);
  CHECK_EQ(census.live_objects, 1);
  CHECK_EQ(census.hot_bytes, 0);
  check_sum(&census);
}

int main(void) {
  RUN(nothing_before_the_first_block);
  RUN(large_blocks_are_resident_where_they_were_touched);
  RUN_UNLESS_SECURE(cached_units_are_counted_once);
  RUN(freed_blocks_are_hot_or_free);
  RUN(what_lives_is_counted);
  RUN(a_slab_that_opens_under_the_walk_is_passed_over);
  RUN(hot_blocks_that_no_walk_saw_are_not_subtracted);
  RUN_UNLESS_SECURE(blocks_that_leave_their_bin_under_the_walk_are_not_live);
  return test_status();
}
