#include "epoch/regulars.h"

#include "records.h"

enum { OFTEN = TSL_REGULARS_OFTEN, FEW = TSL_HOME_REGULARS };

static tslab_epoch hosts[FEW + 2];

static void open_hosts(void) {
  open_region();
  for (unsigned i = 0; i < FEW + 2; i++) hosts[i] = open_epoch();
}

static bool come(unsigned host, unsigned times) {
  bool is_regular = false;
  for (unsigned i = 0; i < times; i++) is_regular = tsl_regulars_come(tsl_epoch_slot(hosts[host]));
  return is_regular;
}

static void who_comes_often_is_one(void) {
  open_hosts();
  CHECK(!come(0, OFTEN - 1));
  CHECK(come(0, 1));
  CHECK(come(0, 100));
}

static void a_few_take_turns(void) {
  open_hosts();
  for (unsigned turn = 1; turn < OFTEN; turn++)
    for (unsigned host = 0; host < FEW; host++) CHECK(!come(host, 1));
  for (unsigned host = FEW; host-- != 0;) CHECK(come(host, 1));
}

static void more_than_a_few_are_none(void) {
  open_hosts();
  for (unsigned turn = 0; turn < 10 * OFTEN; turn++)
    for (unsigned host = 0; host <= FEW; host++) CHECK(!come(host, 1));
}

// The one that came longest ago makes room.
static void who_stays_away_is_forgotten(void) {
  open_hosts();
  CHECK(!come(0, OFTEN - 1));
  for (unsigned host = 1; host <= FEW; host++) come(host, 1);
  CHECK(!come(0, OFTEN - 1));
  CHECK(come(0, 1));
}

// Each keeps memory until it ends: a thread that goes from one host to the next has few of them.
static void regulars_make_no_room_before_they_end(void) {
  open_hosts();
  for (unsigned host = 0; host < FEW; host++) CHECK(come(host, OFTEN));
  CHECK(!come(FEW, 100 * OFTEN));
  for (unsigned host = 0; host < FEW; host++) CHECK(come(host, 1));
  end(hosts[1]);
  CHECK(come(FEW, OFTEN));
  CHECK(!come(FEW + 1, 100 * OFTEN));
}

static void an_epoch_in_the_slot_of_another_is_a_new_one(void) {
  open_hosts();
  CHECK(come(0, OFTEN));
  end(hosts[0]);
  tslab_epoch next = open_epoch();
  CHECK_EQ(tsl_epoch_slot(next), tsl_epoch_slot(hosts[0]));
  hosts[0] = next;
  CHECK(!come(0, OFTEN - 1));
  CHECK(come(0, 1));
}

static void a_thread_without_a_home_has_none(void) {
  open_hosts();
  tsl_heap_current = &tsl_home_empty.heap;
  CHECK(!come(0, 2 * OFTEN));
}

int main(void) {
  RUN(who_comes_often_is_one);
  RUN(a_few_take_turns);
  RUN(more_than_a_few_are_none);
  RUN(who_stays_away_is_forgotten);
  RUN(regulars_make_no_room_before_they_end);
  RUN(an_epoch_in_the_slot_of_another_is_a_new_one);
  RUN(a_thread_without_a_home_has_none);
  return test_status();
}
