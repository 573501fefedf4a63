#include "memory/growth.h"

#include "base/bits.h"
#include "base/options.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "os/os.h"
#include "os_fake.h"
#include "state.h"

// How growth and the beginning commit: units, map, records, cells, granules, segments; the arrays.
enum { COMMITS_TO_GROW = 6, COMMITS_TO_BEGIN = 8 };

static void open_region(size_t bytes) {
  os_fake.limit_bytes = bytes;
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, bytes);
}

// As at the program's start.
static void close_region(void) {
  os_fake_recover();
  os_fake_close_arena();
  tsl_region = (struct tsl_region){0};
  tsl_segments_after_fork();  // counts what is free anew
}

static uintptr_t granules_from(size_t unit) {
  return (uintptr_t)tsl_granule_at(tsl_unit_address(unit));
}

static void check_layout(void) {
  const struct tsl_region *r = &tsl_region;
  size_t segments = tsl_divide_up(r->limit_units, TSL_SEGMENT_UNITS);
  CHECK_EQ(r->base & (r->span_bytes - 1), 0);
  CHECK_GE(tsl_unit_address(r->first_unit), r->base + r->limit_units * sizeof(uint32_t));
  CHECK(r->first_unit < r->limit_units);
  CHECK_GE(r->records, tsl_unit_address(r->limit_units));
  CHECK_GE(r->cells, r->records + r->limit_units * TSL_RECORD_BYTES);
  CHECK_GE(granules_from(0), r->cells + r->limit_units * TSL_CELLS_BYTES);
  CHECK_GE(r->segments, granules_from(r->limit_units));
  CHECK_GE(r->heaps, r->segments + segments * sizeof(struct tsl_segment));
  CHECK_GE(r->stores, r->heaps + r->limit_heaps * TSL_HEAP_BYTES);
  CHECK_GE(r->epochs, r->stores + r->limit_heaps * TSL_STORE_BYTES);
  CHECK_LE(r->epochs + r->limit_epochs * TSL_EPOCH_BYTES, r->base + r->span_bytes);
  CHECK_LE(r->limit_heaps, TSL_MOST_HEAPS);
  CHECK_EQ(r->units, 0);
  CHECK_EQ(r->last_heap, 0);
}

static void every_span_has_room(void) {
  for (unsigned log2 = 24; log2 <= 30; log2++) {
    open_region((size_t)1 << log2);
    check_layout();
    CHECK(os_fake_is_committed((void *)tsl_region.epochs, TSL_EPOCH_BYTES));
    CHECK(os_fake_is_closed((void *)tsl_unit_address(tsl_region.first_unit), TSL_UNIT_BYTES));
    CHECK_LE(os_fake.committed_bytes, ((size_t)512 << 10) + 8 * os_fake_page_bytes());
    close_region();
  }
}

static void plan_follows_option_and_space(void) {
  static const struct {
    size_t option, limit, bytes, span;
  } cases[] = {{64 << 20, SIZE_MAX, 64 << 20, 64 << 20},
               {64 << 20, 64 << 20, 64 << 20, 64 << 20},
               {(64 << 20) + 1, SIZE_MAX, 64 << 20, 64 << 20},
               {100 << 20, 99 << 20, 99 << 20, 128 << 20},
               {100 << 20, 128 << 20, 100 << 20, 128 << 20},
               {512 << 20, 65 << 20, 65 << 20, 128 << 20},
               {(size_t)1 << 46, SIZE_MAX, OS_FAKE_MOST_BYTES, OS_FAKE_MOST_BYTES},
               {1 << 30, 16 << 20, 16 << 20, 16 << 20}};
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    check_context_set("case %zu", i);
    os_fake.has_no_places = i % 2;
    tsl_options.reserve = cases[i / 2].option;
    os_fake.limit_bytes = cases[i / 2].limit;
    CHECK(tsl_region_init());
    CHECK_LE(tsl_region.epochs + tsl_region.limit_epochs * TSL_EPOCH_BYTES,
             tsl_region.base + cases[i / 2].bytes);
    CHECK_GE(tsl_region.epochs + tsl_region.limit_epochs * TSL_EPOCH_BYTES + TSL_UNIT_BYTES,
             tsl_region.base + cases[i / 2].bytes);
    CHECK_EQ(tsl_region.span_bytes, cases[i / 2].span);
    close_region();
  }
}

// What was mapped at the place before it goes back: the fake has one place at a time.
static void places_in_use_are_left(void) {
  for (unsigned commit = 1; commit <= COMMITS_TO_BEGIN; commit++) {
    check_context_set("commit %u", commit);
    os_fake.failures[OS_FAKE_COMMIT].at = os_fake.calls[OS_FAKE_COMMIT] + commit;
    uint64_t places = os_fake.calls[OS_FAKE_PLACE];
    CHECK(tsl_region_init());
    check_layout();
    CHECK_EQ(os_fake.calls[OS_FAKE_PLACE], places + 2);
    CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 0);
    close_region();
  }
}

static void without_a_place_it_is_reserved(void) {
  os_fake_fail_all(OS_FAKE_PLACE);
  CHECK(tsl_region_init());
  check_layout();
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 1);
  CHECK_EQ(os_fake.calls[OS_FAKE_NAME], 1);
}

static void refused_reservations_halve(void) {
  os_fake.has_no_places = true;
  tsl_options.reserve = (size_t)1 << 29;
  os_fake.limit_bytes = (size_t)1 << 29;
  os_fake_fail_next(OS_FAKE_RESERVE);
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, (size_t)1 << 28);
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 2);
}

// The fake has 2 GiB, so that five reservations are refused.
static void many_refused_reservations(void) {
  os_fake.has_no_places = true;
  tsl_options.reserve = (size_t)1 << 36;
  os_fake.limit_bytes = SIZE_MAX;
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, OS_FAKE_MOST_BYTES);
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 6);
}

static void no_address_space(void) {
  os_fake.has_no_places = true;
  os_fake.limit_bytes = (size_t)1 << 28;
  os_fake_fail_all(OS_FAKE_RESERVE);
  CHECK(!tsl_region_init());
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 28 - 24 + 1);
  os_fake_recover();
  os_fake_fail_next(OS_FAKE_RESERVE);
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, (size_t)1 << 27);
}

static void too_low_a_limit(void) {
  static const size_t limits[] = {0, 1, 65536, (1 << 24) - 1};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    os_fake.limit_bytes = limits[i];
    CHECK(!tsl_region_init());
  }
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 0);
}

static void refused_beginning_gives_the_space_back(void) {
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(!tsl_region_init());
  CHECK_EQ(os_fake.calls[OS_FAKE_PLACE], OS_FAKE_PLACES);
  CHECK_EQ(os_fake.calls[OS_FAKE_UNRESERVE], 1);
  CHECK_EQ(tsl_region.base, 0);
  os_fake_recover();
  CHECK(tsl_region_init());
  check_layout();
}

// What is below 2 MiB needs no advice; what grows later inherits it. Who takes memory asks for huge
// pages (huge.h).
static void huge_page_advice(void) {
  tsl_options.thp = TSL_THP_AUTO;
  open_region((size_t)1 << 28);
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 0);
  CHECK(tsl_region_grow(63));
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 1);
  CHECK_EQ(os_fake.calls[OS_FAKE_NAME], 1);
  CHECK(!os_fake.huge_wanted);
  CHECK(tsl_region_grow(64));
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 1);
  close_region();
  tsl_options.thp = TSL_THP_ALWAYS;
  open_region((size_t)1 << 26);
  CHECK(tsl_region_grow(64));
  CHECK(os_fake.huge_wanted);
  close_region();
  tsl_options.thp = TSL_THP_NEVER;
  open_region((size_t)1 << 26);
  CHECK(tsl_region_grow(64));
  CHECK(!os_fake.huge_wanted);
}

static void huge_page_advice_in_a_reservation(void) {
  os_fake.has_no_places = true;
  tsl_options.thp = TSL_THP_ALWAYS;
  open_region((size_t)1 << 28);
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 1);
  CHECK(os_fake.huge_wanted);
  CHECK(tsl_region_grow(500));
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 1);
}

// What is known of the units that can be taken.
static void check_elements(uintptr_t array, size_t units, size_t bytes) {
  uintptr_t first = tsl_round_down(array + tsl_region.first_unit * bytes, os_fake_page_bytes());
  CHECK(os_fake_is_committed((void *)first, array + units * bytes - first));
}

// R3: what `units` counts can be used, and what lies above it, but for a page, is not committed.
static void check_grown(void) {
  size_t units = tsl_region.units, first = tsl_region.first_unit;
  size_t segments = tsl_divide_up(units, TSL_SEGMENT_UNITS);
  CHECK(os_fake_is_committed((void *)tsl_unit_address(first), (units - first) << TSL_UNIT_LOG2));
  check_elements(tsl_region.base, units, sizeof(uint32_t));
  check_elements(tsl_region.records, units, TSL_RECORD_BYTES);
  check_elements(tsl_region.cells, units, TSL_CELLS_BYTES);
  check_elements(granules_from(0), units, TSL_GRANULES_BYTES);
  CHECK(os_fake_is_committed((void *)tsl_region.segments, segments * sizeof(struct tsl_segment)));
  if (units == tsl_region.limit_units || os_fake.has_no_places) return;
  CHECK(os_fake_is_closed((void *)(tsl_unit_address(units) + os_fake_page_bytes()), 1));
}

static size_t next_end(void) {
  size_t units = tsl_region.units, from = units == 0 ? tsl_region.first_unit : units;
  size_t spare = (from - tsl_region.first_unit) / 4;
  if (spare < TSL_LEAST_GROWTH_UNITS) spare = TSL_LEAST_GROWTH_UNITS;
  if (spare > TSL_GROWTH_UNITS) spare = TSL_GROWTH_UNITS;
  size_t end = tsl_round_up(from + spare, TSL_LEAST_GROWTH_UNITS);
  return end < tsl_region.limit_units ? end : tsl_region.limit_units;
}

static void grow_to_the_end(void) {
  open_region((size_t)1 << 28);
  while (tsl_region.units < tsl_region.limit_units) {
    size_t end = next_end();
    CHECK(tsl_region_grow(1));
    CHECK_EQ(tsl_region.units, end);
    check_grown();
    CHECK_EQ(tsl_units_open(), end - tsl_region.first_unit);
    CHECK_EQ(tsl_units_free(), tsl_units_open());
    state_check();
  }
  uint64_t commits = os_fake.calls[OS_FAKE_COMMIT];
  CHECK(!tsl_region_grow(1));
  CHECK(!tsl_region_grow(1));
  CHECK_EQ(os_fake.calls[OS_FAKE_COMMIT], commits);
}

static void grows_to_its_end(void) { grow_to_the_end(); }
static void grows_to_its_end_in_a_reservation(void) {
  os_fake.has_no_places = true;
  grow_to_the_end();
}

static void smallest_region_is_used_up(void) {
  open_region((size_t)1 << 24);
  CHECK(tsl_region_grow(tsl_region.limit_units));
  CHECK_EQ(tsl_region.units, tsl_region.limit_units);
  check_grown();
  CHECK_EQ(tsl_units_free(), tsl_region.limit_units - tsl_region.first_unit);
  CHECK(!tsl_region_grow(1));
  state_check();
}

// Nothing is half done when a commit is refused, and what was mapped goes back; and it goes on
// where it stopped.
static void growth_refused_at(unsigned commit, bool second, bool reserved) {
  check_context_set("commit %u of growth %u, reserved %d", commit, second + 1, reserved);
  os_fake.has_no_places = reserved;
  open_region((size_t)1 << 27);
  if (second) CHECK(tsl_region_grow(1));
  size_t units = tsl_region.units, committed = os_fake.committed_bytes;
  os_fake.failures[OS_FAKE_COMMIT].from = os_fake.calls[OS_FAKE_COMMIT] + commit;
  bool grown = tsl_region_grow(600);
  CHECK(!grown || commit > 1);
  if (!grown) CHECK_EQ(tsl_region.units, units);
  if (!grown && !reserved) CHECK_EQ(os_fake.committed_bytes, committed);
  os_fake_recover();
  if (!grown) CHECK(tsl_region_grow(600));
  CHECK_GE(tsl_units_free(), 600);
  check_grown();
  state_check();
  close_region();
}

static void growth_refused(void) {
  for (unsigned commit = 1; commit <= COMMITS_TO_GROW; commit++) {
    for (int way = 0; way < 4; way++) growth_refused_at(commit, way / 2 != 0, way % 2 != 0);
  }
}

// R3 costs a tenth of a unit. What is missing at the end is less than a unit with its records, and
// less than what the refused steps were rounded up by.
static void a_limit_is_used_up(void) {
  const size_t limit = (size_t)40 << 20, unit = TSL_UNIT_BYTES + TSL_UNIT_BYTES / 10;
  open_region((size_t)1 << 30);
  os_fake.most_committed_bytes = limit;
  while (tsl_region_grow(1)) continue;
  CHECK_GE(os_fake.committed_bytes, limit - unit - 4 * os_fake_page_bytes());
  CHECK_GE(tsl_units_open() << TSL_UNIT_LOG2, limit / 10 * 9);
  check_grown();
  uint64_t commits = os_fake.calls[OS_FAKE_COMMIT];
  CHECK(!tsl_region_grow(1));
  CHECK_LE(os_fake.calls[OS_FAKE_COMMIT], commits + COMMITS_TO_GROW);
  os_fake.most_committed_bytes = SIZE_MAX;
  CHECK(tsl_region_grow(1));
  check_grown();
  state_check();
}

// A want that the system refuses leaves room for smaller ones.
static void too_large_a_want_takes_nothing(void) {
  open_region((size_t)1 << 30);
  os_fake.most_committed_bytes = (size_t)40 << 20;
  size_t committed = os_fake.committed_bytes;
  CHECK(!tsl_region_grow(1000));
  CHECK_EQ(os_fake.committed_bytes, committed);
  CHECK(tsl_region_grow(500));
  check_grown();
}

static void visit_run(uintptr_t start, size_t bytes, void *total) {
  CHECK(os_fake_is_committed((void *)start, bytes));
  *(size_t *)total += bytes;
}

static size_t units_in_runs(void) {
  size_t bytes = 0;
  tsl_region_each_run(visit_run, &bytes);
  return bytes >> TSL_UNIT_LOG2;
}

// Somebody else's memory, `units` behind those that are open: growth goes around it.
static void go_around(size_t units, size_t bytes) {
  size_t before = tsl_region.units == 0 ? tsl_region.first_unit : tsl_region.units;
  size_t open = tsl_units_open();
  uintptr_t start = tsl_unit_address(before + units) + os_fake_page_bytes();
  os_fake_occupy(start, bytes);
  while (tsl_unit_address(tsl_region.units) < start + bytes) CHECK(tsl_region_grow(1));
  CHECK(tsl_region_grow(300));
  CHECK_GE(tsl_units_free(), 300);
  CHECK_EQ(tsl_units_free(), tsl_units_open());
  CHECK_EQ(tsl_units_open(), units_in_runs());
  CHECK_LE(tsl_units_open() - open, tsl_region.units - before - (bytes >> TSL_UNIT_LOG2));
  for (size_t unit = before; unit < tsl_region.units; unit++) CHECK_EQ(*tsl_map_entry(unit), 0);
  state_check();
}

static void other_memory_is_gone_around(void) {
  open_region((size_t)1 << 30);
  go_around(0, TSL_UNIT_BYTES / 2);
  go_around(100, os_fake_page_bytes());
  go_around(5, TSL_UNIT_BYTES * 3000);
  go_around(1000, TSL_UNIT_BYTES * 2);
}

// At a limit growth takes steps of a unit; it needs not so many to pass other memory.
static void small_steps_go_around_other_memory(void) {
  open_region((size_t)1 << 30);
  os_fake.most_committed_bytes = (size_t)40 << 20;
  while (tsl_region_grow(1)) continue;
  os_fake.most_committed_bytes = SIZE_MAX;
  go_around(0, TSL_UNIT_BYTES * 3000);
}

static void other_memory_up_to_the_end(void) {
  open_region((size_t)1 << 28);
  CHECK(tsl_region_grow(1));
  size_t units = tsl_region.units;
  uintptr_t start = tsl_unit_address(units) + os_fake_page_bytes();
  os_fake_occupy(start, tsl_unit_address(tsl_region.limit_units) - start);
  CHECK(!tsl_region_grow(1));
  CHECK(!tsl_region_grow(1));
  CHECK_EQ(tsl_region.units, units);
  CHECK_EQ(tsl_units_open(), units_in_runs());
  state_check();
}

// Growth that cannot go on takes nothing, and says so each time.
static void other_memory_among_the_records(void) {
  open_region((size_t)1 << 28);
  CHECK(tsl_region_grow(1));
  size_t units = tsl_region.units;
  os_fake_occupy(
      tsl_round_up(tsl_region.records + (units + 100) * TSL_RECORD_BYTES, os_fake_page_bytes()), 1);
  CHECK(!tsl_region_grow(200));
  CHECK_EQ(tsl_region.units, units);
  CHECK(tsl_region_grow(1));
  CHECK(!tsl_region_grow(200));
  check_grown();
  state_check();
}

static void nothing_open_is_nothing_free(void) {
  CHECK_EQ(tsl_units_open(), 0);
  open_region((size_t)1 << 27);
  CHECK_EQ(tsl_units_open(), 0);
  CHECK_EQ(tsl_units_free(), 0);
}

static bool is_zero(const char *bytes, size_t count) {
  while (count != 0 && bytes[count - 1] == 0) count--;
  return count == 0;
}

static void heaps_are_numbered_and_zero(void) {
  open_region((size_t)1 << 24);
  for (uint32_t number = 1; number < tsl_region.limit_heaps; number++) {
    char *heap = (char *)tsl_region.heaps + (size_t)number * TSL_HEAP_BYTES;
    CHECK_EQ(tsl_region_add_heap(), number);
    CHECK_EQ(tsl_region.last_heap, number);
    CHECK(is_zero(heap, TSL_HEAP_BYTES));
    memset(heap, 1, TSL_HEAP_BYTES);
  }
  CHECK_EQ(tsl_region_add_heap(), 0);
  CHECK_EQ(tsl_region.last_heap, tsl_region.limit_heaps - 1);
}

static void refused_heap(void) {
  open_region((size_t)1 << 24);
  os_fake_fail_all(OS_FAKE_COMMIT);
  uint32_t last = 0;
  for (uint32_t number; (number = tsl_region_add_heap()) != 0;) CHECK_EQ(number, ++last);
  CHECK_EQ(tsl_region.last_heap, last);
  os_fake_recover();
  CHECK_EQ(tsl_region_add_heap(), last + 1);
}

int main(void) {
  RUN(every_span_has_room);
  RUN(plan_follows_option_and_space);
  RUN(places_in_use_are_left);
  RUN(without_a_place_it_is_reserved);
  RUN(refused_reservations_halve);
  RUN(many_refused_reservations);
  RUN(no_address_space);
  RUN(too_low_a_limit);
  RUN(refused_beginning_gives_the_space_back);
  RUN(huge_page_advice);
  RUN(huge_page_advice_in_a_reservation);
  RUN(grows_to_its_end);
  RUN(grows_to_its_end_in_a_reservation);
  RUN(smallest_region_is_used_up);
  RUN(growth_refused);
  RUN(a_limit_is_used_up);
  RUN(too_large_a_want_takes_nothing);
  RUN(other_memory_is_gone_around);
  RUN(small_steps_go_around_other_memory);
  RUN(other_memory_up_to_the_end);
  RUN(other_memory_among_the_records);
  RUN(nothing_open_is_nothing_free);
  RUN(heaps_are_numbered_and_zero);
  RUN(refused_heap);
  return test_status();
}
