#include "memory/stretch.h"

#include "os_fake.h"
#include "test.h"

#define PAGE os_fake_page_bytes()

static struct tsl_stretch stretch;

static void open_stretch(bool is_reserved) {
  size_t bytes = (size_t)1 << 24;
  uintptr_t start = is_reserved ? (uintptr_t)tsl_os_reserve(bytes, bytes) : tsl_os_place(&bytes, 0);
  CHECK(start != 0);
  stretch = tsl_stretch_at(start, is_reserved);
}

// T1, T2
static void check_pages(size_t pages) {
  CHECK_EQ(stretch.end, stretch.start + pages * PAGE);
  CHECK_EQ(stretch.begun, stretch.end);
  if (pages != 0) CHECK(os_fake_is_committed((void *)stretch.start, pages * PAGE));
  CHECK(os_fake_is_closed((void *)stretch.end, PAGE));
}

static enum tsl_os_mapped reach(size_t pages) {
  return tsl_stretch_reach(&stretch, stretch.start + pages * PAGE);
}

static void grow_page_by_page(bool is_reserved) {
  open_stretch(is_reserved);
  check_pages(0);
  for (size_t pages = 1; pages < 20; pages++) {
    CHECK_EQ(tsl_stretch_reach(&stretch, stretch.end + 1), TSL_OS_MAPPED);
    check_pages(pages);
  }
  uint64_t commits = os_fake.calls[OS_FAKE_COMMIT];
  CHECK_EQ(reach(7), TSL_OS_MAPPED);
  check_pages(19);
  CHECK_EQ(os_fake.calls[OS_FAKE_COMMIT], commits);
}
static void grows_by_pages(void) { grow_page_by_page(false); }
static void grows_by_pages_in_a_reservation(void) { grow_page_by_page(true); }

static void refused_steps_change_nothing(void) {
  for (int is_reserved = 0; is_reserved <= 1; is_reserved++) {
    open_stretch(is_reserved != 0);
    for (size_t pages = 0; pages <= 3; pages += 3) {
      os_fake_fail_next(OS_FAKE_COMMIT);
      CHECK_EQ(reach(pages + 3), TSL_OS_REFUSED);
      check_pages(pages);
      CHECK_EQ(reach(pages + 3), TSL_OS_MAPPED);
      check_pages(pages + 3);
    }
    os_fake_close_arena();
  }
}

static void other_memory_stays(void) {
  open_stretch(false);
  os_fake_occupy(stretch.start + 5 * PAGE, PAGE);
  CHECK_EQ(reach(6), TSL_OS_OCCUPIED);
  check_pages(0);
  CHECK_EQ(reach(3), TSL_OS_MAPPED);
  CHECK_EQ(reach(9), TSL_OS_OCCUPIED);
  check_pages(3);
}

static void retreats(void) {
  open_stretch(false);
  CHECK_EQ(reach(8), TSL_OS_MAPPED);
  tsl_stretch_retreat(&stretch, stretch.start + 5 * PAGE);
  check_pages(5);
  tsl_stretch_retreat(&stretch, stretch.start + 6 * PAGE);
  check_pages(5);
  CHECK_EQ(reach(8), TSL_OS_MAPPED);
  tsl_stretch_retreat(&stretch, stretch.start);
  check_pages(0);
  CHECK_EQ(reach(1), TSL_OS_MAPPED);
  check_pages(1);
}

static void reservations_keep_what_they_have(void) {
  open_stretch(true);
  CHECK_EQ(reach(8), TSL_OS_MAPPED);
  tsl_stretch_retreat(&stretch, stretch.start);
  check_pages(8);
}

// T2: what the child of a fork sees when the step from 2 to 6 pages was begun, with and without the
// memory.
static void begun_steps_are_done_again(void) {
  for (size_t wanted = 1; wanted <= 9; wanted += 4) {
    for (int done = 0; done <= 1; done++) {
      check_context_set("%zu pages wanted, done %d", wanted, done);
      open_stretch(false);
      CHECK_EQ(reach(2), TSL_OS_MAPPED);
      if (done != 0) CHECK_EQ(reach(6), TSL_OS_MAPPED);
      stretch.end = stretch.start + 2 * PAGE;
      stretch.begun = stretch.start + 6 * PAGE;
      CHECK_EQ(reach(wanted), TSL_OS_MAPPED);
      check_pages(wanted > 6 ? wanted : 6);
      tsl_stretch_retreat(&stretch, stretch.start);
    }
  }
}

static void begun_steps_may_be_refused(void) {
  open_stretch(false);
  CHECK_EQ(reach(2), TSL_OS_MAPPED);
  stretch.begun = stretch.start + 6 * PAGE;
  os_fake_fail_next(OS_FAKE_COMMIT);
  CHECK_EQ(reach(3), TSL_OS_REFUSED);
  CHECK_EQ(stretch.end, stretch.start + 2 * PAGE);
  CHECK_EQ(reach(3), TSL_OS_MAPPED);
  check_pages(6);
}

// Once, when it is large enough; a reservation is named as a whole.
static void large_ones_are_named(void) {
  for (int is_reserved = 0; is_reserved <= 1; is_reserved++) {
    open_stretch(is_reserved != 0);
    uint64_t names = os_fake.calls[OS_FAKE_NAME];
    CHECK_EQ(reach(511), TSL_OS_MAPPED);
    CHECK_EQ(os_fake.calls[OS_FAKE_NAME], names);
    CHECK_EQ(reach(512), TSL_OS_MAPPED);
    CHECK_EQ(reach(1024), TSL_OS_MAPPED);
    CHECK_EQ(os_fake.calls[OS_FAKE_NAME], names + !is_reserved);
    CHECK_EQ(os_fake.calls[OS_FAKE_ADVISE_HUGE], names + !is_reserved);
    os_fake_close_arena();
  }
}

int main(void) {
  RUN(grows_by_pages);
  RUN(grows_by_pages_in_a_reservation);
  RUN(refused_steps_change_nothing);
  RUN(other_memory_stays);
  RUN(retreats);
  RUN(reservations_keep_what_they_have);
  RUN(begun_steps_are_done_again);
  RUN(begun_steps_may_be_refused);
  RUN(large_ones_are_named);
  return test_status();
}
