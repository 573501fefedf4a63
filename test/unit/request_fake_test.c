#include "tell/request.h"

#include "base/options.h"
#include "heap/count.h"
#include "heap/store.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "samples.h"
#include "takes.h"

enum { IDLE = 100 };

static void make_idle(void) {
  bool clean;
  tsl_unit first = tsl_units_take(IDLE, 1, &clean);
  CHECK(first != 0);
  tsl_units_give(first, IDLE);
  CHECK_GE(tsl_units_dirty(), IDLE);
}

static struct tsl_control_row *open_file(void) {
  tsl_options.purge_delay_ms = 3600000;
  open_homes(0);
  tsl_report_start();
  make_idle();
  return TSL_ROW(control, 0);
}

static void nothing_goes_back_unasked(void) {
  open_file();
  CHECK(!tsl_request_follow());
  CHECK_GE(tsl_units_dirty(), IDLE);
  CHECK_EQ(process()->purge_request, 0);
}

// RQ1, RQ2.
static void a_request_is_followed_once(void) {
  struct tsl_control_row *control = open_file();
  control->purge_request = 7;
  uint64_t purged = process()->purged_bytes;
  CHECK(tsl_request_follow());
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(process()->purge_request, 7);
  CHECK_GE(process()->purged_bytes - purged, IDLE * TSL_UNIT_BYTES);
  make_idle();
  CHECK(!tsl_request_follow());
  CHECK_EQ(tsl_units_dirty(), IDLE);
  control->purge_request = 3;  // whatever another process writes there is a request
  CHECK(tsl_request_follow());
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(process()->purge_request, 3);
  control->purge_request = 0;
  make_idle();
  CHECK(!tsl_request_follow());
  CHECK_EQ(tsl_units_dirty(), IDLE);
}

static void a_thread_leaves_it_to_the_helper(void) {
  struct tsl_control_row *control = open_file();
  control->purge_request = 1;
  tsl_purge_set_helper(true);
  tsl_request_tick();
  CHECK_EQ(tsl_units_dirty(), IDLE);
  tsl_purge_set_helper(false);
  tsl_request_tick();
  CHECK_EQ(tsl_units_dirty(), 0);
}

// A program that only takes hot blocks, and one that only takes large ones.
static void threads_come_by(void) {
  struct tsl_control_row *control = open_file();
  control->purge_request = 1;
  unsigned count = 0;
  for (; process()->purge_request != 1; count++) {
    tsl_fast_free(tsl_fast_malloc(16));
    CHECK_LE(count, 40000);
    if (count % 1000 == 0) os_fake.now_ms++;
  }
  CHECK_EQ(tsl_units_dirty(), 0);
  control->purge_request = 2;
  void *block = tsl_fast_malloc(1 << 20);
  CHECK_EQ(process()->purge_request, 2);
  tsl_fast_free(block);
}

// What windows leave alone wakes nobody: the thread has no reason to tick.
static void kept_memory_goes_back(void) {
  struct tsl_control_row *control = open_file();
  tsl_purge_keep((size_t)1 << 30);
  for (unsigned i = 0; mine->home->awake && i < 100000; i++) {
    tsl_fast_free(tsl_fast_malloc(16));
    os_fake.now_ms++;
  }
  CHECK(!mine->home->awake);
  mine->home->pace = TSL_REST_MOST_PACE;
  tsl_heap_count(mine, takes_class(16));
  control->purge_request = 1;
  for (unsigned i = 0; i < 65600; i++) tsl_fast_free(tsl_fast_malloc(16));
  CHECK_EQ(process()->purge_request, 1);
  CHECK_EQ(tsl_units_dirty(), 0);
}

// The system refuses: nothing goes back, and the request is over.
static void a_refusal_ends_the_request(void) {
  struct tsl_control_row *control = open_file();
  os_fake_fail_all(OS_FAKE_PURGE);
  control->purge_request = 1;
  tsl_request_follow();
  CHECK_EQ(process()->purge_request, 1);
  CHECK_GE(process()->purges_refused, 1);
  os_fake_recover();
}

static void a_child_begins_anew(void) {
  struct tsl_control_row *control = open_file();
  control->purge_request = 1;
  tsl_request_follow();
  make_idle();
  tsl_request_after_fork();
  tsl_request_follow();
  CHECK_EQ(tsl_units_dirty(), 0);
}

int main(void) {
  RUN(nothing_goes_back_unasked);
  RUN(a_request_is_followed_once);
  RUN(a_thread_leaves_it_to_the_helper);
  RUN(threads_come_by);
  RUN(kept_memory_goes_back);
  RUN(a_refusal_ends_the_request);
  RUN(a_child_begins_anew);
  return test_status();
}
