#include "memory/region.h"

#include "base/bits.h"
#include "base/options.h"
#include "memory/record.h"
#include "memory/segment.h"
#include "os/os.h"
#include "os_fake.h"
#include "state.h"

enum { COMMITS_TO_GROW = 6 };  // map, records, cells, granules, segments, units

static void open_region(size_t bytes) {
  os_fake.limit_bytes = bytes;
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, bytes);
}

static uintptr_t granules_from(size_t unit) {
  return (uintptr_t)tsl_granule_at(tsl_unit_address(unit));
}

static void check_layout(void) {
  const struct tsl_region *r = &tsl_region;
  size_t segments = tsl_divide_up(r->limit_units, TSL_SEGMENT_UNITS);
  CHECK_EQ(r->base & (r->span_bytes - 1), 0);
  CHECK_LE(r->limit_units << TSL_UNIT_LOG2, r->span_bytes);
  CHECK_GE(r->records, r->base + r->limit_units * sizeof(uint32_t));
  CHECK_GE(r->cells, r->records + r->limit_units * TSL_RECORD_BYTES);
  CHECK_GE(granules_from(0), r->cells + r->limit_units * TSL_CELLS_BYTES);
  CHECK_GE(r->segments, granules_from(r->limit_units));
  CHECK_GE(r->heaps, r->segments + segments * sizeof(struct tsl_segment));
  CHECK_GE(r->stores, r->heaps + r->limit_heaps * TSL_HEAP_BYTES);
  CHECK_GE(r->epochs, r->stores + r->limit_heaps * TSL_STORE_BYTES);
  CHECK_GE(tsl_unit_address(r->first_unit), r->epochs + r->limit_epochs * TSL_EPOCH_BYTES);
  CHECK(r->first_unit < r->limit_units);
  CHECK_LE(r->limit_heaps, TSL_MOST_HEAPS);
  CHECK_EQ(r->units, 0);
  CHECK_EQ(r->last_heap, 0);
}

static void every_span_has_room(void) {
  for (unsigned log2 = 24; log2 <= 30; log2++) {
    open_region((size_t)1 << log2);
    check_layout();
    CHECK_EQ(os_fake.committed_bytes, TSL_UNIT_BYTES);  // the default epoch
    os_fake.committed_bytes = 0;
    tsl_os_unreserve((void *)tsl_region.base, tsl_region.limit_units << TSL_UNIT_LOG2);
  }
}

// R2
static void map_is_readable_and_zero(void) {
  open_region((size_t)1 << 28);
  for (size_t unit = 0; unit < tsl_region.limit_units; unit++) {
    if (*tsl_map_entry(unit) != 0) CHECK_EQ(*tsl_map_entry(unit), 0);
  }
  CHECK(os_fake_is_readable(tsl_map_entry(0), tsl_region.limit_units * sizeof(uint32_t)));
}

static void span_follows_option_and_limit(void) {
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
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_context_set("case %zu", i);
    tsl_options.reserve = cases[i].option;
    os_fake.limit_bytes = cases[i].limit;
    CHECK(tsl_region_init());
    CHECK_EQ(tsl_region.limit_units, cases[i].bytes >> TSL_UNIT_LOG2);
    CHECK_EQ(tsl_region.span_bytes, cases[i].span);
    tsl_os_unreserve((void *)tsl_region.base, tsl_region.limit_units << TSL_UNIT_LOG2);
  }
}

static void refused_reservations_halve(void) {
  tsl_options.reserve = (size_t)1 << 29;
  os_fake.limit_bytes = (size_t)1 << 29;
  os_fake_fail_next(OS_FAKE_RESERVE);
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, (size_t)1 << 28);
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 2);
}

// The fake has 2 GiB, so that five reservations are refused.
static void many_refused_reservations(void) {
  tsl_options.reserve = (size_t)1 << 36;
  os_fake.limit_bytes = SIZE_MAX;
  CHECK(tsl_region_init());
  CHECK_EQ(tsl_region.span_bytes, OS_FAKE_MOST_BYTES);
  CHECK_EQ(os_fake.calls[OS_FAKE_RESERVE], 6);
}

static void no_address_space(void) {
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

static void refused_map_gives_the_space_back(void) {
  os_fake_fail_next(OS_FAKE_MAKE_READABLE);
  CHECK(!tsl_region_init());
  CHECK_EQ(os_fake.calls[OS_FAKE_UNRESERVE], 1);
  CHECK_EQ(tsl_region.base, 0);
  CHECK(tsl_region_init());
  check_layout();
}

static void huge_page_advice(void) {
  tsl_options.thp = TSL_THP_AUTO;
  open_region((size_t)1 << 28);
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 1);
  CHECK(!os_fake.huge_wanted);
  CHECK(tsl_region_grow(63));
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 1);
  CHECK(tsl_region_grow(64));
  CHECK(os_fake.huge_wanted);
  tsl_os_unreserve((void *)tsl_region.base, tsl_region.limit_units << TSL_UNIT_LOG2);
  tsl_options.thp = TSL_THP_ALWAYS;
  open_region((size_t)1 << 25);
  CHECK(os_fake.huge_wanted);
  tsl_os_unreserve((void *)tsl_region.base, tsl_region.limit_units << TSL_UNIT_LOG2);
  tsl_options.thp = TSL_THP_NEVER;
  open_region((size_t)1 << 25);
  CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], 4);
  CHECK(!os_fake.huge_wanted);
}

// What is known of the units that can be taken.
static void check_elements(uintptr_t array, size_t units, size_t bytes) {
  uintptr_t first = tsl_round_down(array + tsl_region.first_unit * bytes, os_fake_page_bytes());
  CHECK(os_fake_is_committed((void *)first, array + units * bytes - first));
}

// R3: what `units` counts can be used, and what lies above is not committed.
static void check_grown(size_t units) {
  size_t first = tsl_region.first_unit, segments = tsl_divide_up(units, TSL_SEGMENT_UNITS);
  CHECK_EQ(tsl_region.units, units);
  CHECK(os_fake_is_committed((void *)tsl_unit_address(first), (units - first) << TSL_UNIT_LOG2));
  check_elements(tsl_region.base, units, sizeof(uint32_t));
  check_elements(tsl_region.records, units, TSL_RECORD_BYTES);
  check_elements(tsl_region.cells, units, TSL_CELLS_BYTES);
  check_elements(granules_from(0), units, TSL_GRANULES_BYTES);
  CHECK(os_fake_is_committed((void *)tsl_region.segments, segments * sizeof(struct tsl_segment)));
  if (units == tsl_region.limit_units) return;
  CHECK(!os_fake_is_readable((void *)tsl_unit_address(units), 1));
}

// What the region opens next, from `units` on.
static size_t next_end(size_t units) {
  size_t from = units == 0 ? tsl_region.first_unit : units;
  return tsl_round_up(from + 1, TSL_GROWTH_UNITS);
}

static void grows_to_its_end(void) {
  open_region((size_t)1 << 28);
  while (tsl_region.units < tsl_region.limit_units) {
    size_t end = next_end(tsl_region.units);
    CHECK(tsl_region_grow(1));
    check_grown(end);
    CHECK_EQ(tsl_units_open(), end - tsl_region.first_unit);
    CHECK_EQ(tsl_units_free(), tsl_units_open());
    state_check();
  }
  uint64_t commits = os_fake.calls[OS_FAKE_COMMIT];
  CHECK(!tsl_region_grow(1));
  CHECK(!tsl_region_grow(1));
  CHECK_EQ(os_fake.calls[OS_FAKE_COMMIT], commits);
}

static void smallest_region_grows_once(void) {
  open_region((size_t)1 << 24);
  CHECK(tsl_region_grow(1));
  check_grown(256);
  CHECK_EQ(tsl_units_free(), 256 - tsl_region.first_unit);
  CHECK(!tsl_region_grow(1));
  state_check();
}

// Nothing is half done when a commit is refused; and it goes on where it stopped.
static void growth_refused_at(unsigned commit, bool second) {
  check_context_set("commit %u of growth %u", commit, second + 1);
  open_region((size_t)1 << 27);
  if (second) CHECK(tsl_region_grow(1));
  size_t units = tsl_region.units, end = next_end(units);
  os_fake.failures[OS_FAKE_COMMIT].at = os_fake.calls[OS_FAKE_COMMIT] + commit;
  bool grown = tsl_region_grow(1);
  CHECK(!grown || commit > 1);
  if (!grown) CHECK_EQ(tsl_region.units, units);
  if (!grown) CHECK(tsl_region_grow(1));
  check_grown(end);
  state_check();
}

static void growth_refused(void) {
  for (unsigned commit = 1; commit <= COMMITS_TO_GROW; commit++) {
    for (int second = 0; second <= 1; second++) {
      growth_refused_at(commit, second != 0);
      os_fake_recover();
      tsl_os_unreserve((void *)tsl_region.base, tsl_region.limit_units << TSL_UNIT_LOG2);
      tsl_region.units = 0;
    }
  }
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
  os_fake_fail_next(OS_FAKE_COMMIT);
  CHECK_EQ(tsl_region_add_heap(), 0);
  CHECK_EQ(tsl_region.last_heap, 0);
  CHECK_EQ(tsl_region_add_heap(), 1);
  os_fake_fail_all(OS_FAKE_COMMIT);
  uint32_t last = 1;
  for (uint32_t number; (number = tsl_region_add_heap()) != 0;) CHECK_EQ(number, ++last);
  CHECK_EQ(tsl_region.last_heap, last);
  os_fake_recover();
  CHECK_EQ(tsl_region_add_heap(), last + 1);
}

static void lookup_of_any_address(void) {
  int local = 0;
  open_region((size_t)1 << 24);
  CHECK(tsl_region_grow(1));
  *tsl_map_entry(tsl_region.first_unit) = 77;
  *tsl_map_entry(tsl_region.limit_units - 1) = 78;
  char *base = (char *)tsl_region.base, *end = base + tsl_region.span_bytes;
  char *first = (char *)tsl_unit_address(tsl_region.first_unit);
  CHECK_EQ(tsl_map_lookup(NULL), 0);
  CHECK_EQ(tsl_map_lookup((void *)UINTPTR_MAX), 0);
  CHECK_EQ(tsl_map_lookup(&local), 0);
  CHECK_EQ(tsl_map_lookup(base), 0);
  CHECK_EQ(tsl_map_lookup(base - 1), 0);
  CHECK_EQ(tsl_map_lookup(end), 0);
  CHECK_EQ(tsl_map_lookup(first - 1), 0);
  CHECK_EQ(tsl_map_lookup(first), 77);
  CHECK_EQ(tsl_map_lookup(first + TSL_UNIT_BYTES - 1), 77);
  CHECK_EQ(tsl_map_lookup(first + TSL_UNIT_BYTES), 0);
  CHECK_EQ(tsl_map_lookup(end - 1), 78);
}

int main(void) {
  RUN(every_span_has_room);
  RUN(map_is_readable_and_zero);
  RUN(span_follows_option_and_limit);
  RUN(refused_reservations_halve);
  RUN(many_refused_reservations);
  RUN(no_address_space);
  RUN(too_low_a_limit);
  RUN(refused_map_gives_the_space_back);
  RUN(huge_page_advice);
  RUN(grows_to_its_end);
  RUN(smallest_region_grows_once);
  RUN(growth_refused);
  RUN(nothing_open_is_nothing_free);
  RUN(heaps_are_numbered_and_zero);
  RUN(refused_heap);
  RUN(lookup_of_any_address);
  return test_status();
}
