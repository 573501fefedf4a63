#include "epoch/regulars.h"

#include "records.h"

enum { OFTEN = TSL_REGULARS_OFTEN, FEW = TSL_HOME_REGULARS };

static bool come(uint32_t host, unsigned times) {
  bool is_regular = false;
  for (unsigned i = 0; i < times; i++) is_regular = tsl_regulars_come(host);
  return is_regular;
}

static void who_comes_often_is_one(void) {
  open_region();
  CHECK(!come(1, OFTEN - 1));
  CHECK(come(1, 1));
  CHECK(come(1, 100));
}

static void a_few_take_turns(void) {
  open_region();
  for (unsigned turn = 1; turn < OFTEN; turn++)
    for (uint32_t host = 1; host <= FEW; host++) CHECK(!come(host, 1));
  for (uint32_t host = FEW; host >= 1; host--) CHECK(come(host, 1));
}

static void more_than_a_few_are_none(void) {
  open_region();
  for (unsigned turn = 0; turn < 10 * OFTEN; turn++)
    for (uint32_t host = 1; host <= FEW + 1; host++) CHECK(!come(host, 1));
}

// The one that came longest ago makes room.
static void who_stays_away_is_forgotten(void) {
  open_region();
  CHECK(come(1, OFTEN));
  for (uint32_t host = 2; host <= FEW; host++) come(host, 1);
  CHECK(come(1, 1));
  for (uint32_t host = 2; host <= FEW + 1; host++) come(host, 1);
  CHECK(!come(1, OFTEN - 1));
  CHECK(come(1, 1));
}

static void a_thread_without_a_home_has_none(void) {
  open_region();
  tsl_heap_current = &tsl_home_empty.heap;
  CHECK(!come(1, 2 * OFTEN));
}

int main(void) {
  RUN(who_comes_often_is_one);
  RUN(a_few_take_turns);
  RUN(more_than_a_few_are_none);
  RUN(who_stays_away_is_forgotten);
  RUN(a_thread_without_a_home_has_none);
  return test_status();
}
