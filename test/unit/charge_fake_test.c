#include "heap/charge.h"

#include "heap/part.h"
#include "records.h"

static void charged_along_the_chain(void) {
  open_region();
  tslab_epoch root = open_epoch(), middle = open_child(root), leaf = open_child(middle);
  tslab_epoch stranger = open_epoch();
  CHECK(tsl_epoch_charge(tsl_epoch_slot(leaf), 100));
  CHECK(tsl_epoch_charge(tsl_epoch_slot(middle), 20));
  CHECK(tsl_epoch_charge(tsl_epoch_slot(root), 3));
  CHECK_EQ(at(leaf)->held_bytes, 100);
  CHECK_EQ(at(middle)->held_bytes, 120);
  CHECK_EQ(at(root)->held_bytes, 123);
  CHECK_EQ(at(stranger)->held_bytes, 0);
  tsl_epoch_discharge(tsl_epoch_slot(leaf), 60);
  tsl_epoch_discharge(tsl_epoch_slot(middle), 20);
  CHECK_EQ(at(leaf)->held_bytes, 40);
  CHECK_EQ(at(middle)->held_bytes, 40);
  CHECK_EQ(at(root)->held_bytes, 43);
}

// A charge that an ancestor refuses was never held.
static void the_peak_stays(void) {
  open_region();
  tslab_epoch root = open_with(&(tslab_epoch_options){.hard_limit_bytes = 200});
  tslab_epoch leaf = open_child(root);
  CHECK(tsl_epoch_charge(tsl_epoch_slot(leaf), 150));
  CHECK(!tsl_epoch_charge(tsl_epoch_slot(leaf), 100));
  tsl_epoch_discharge(tsl_epoch_slot(leaf), 120);
  CHECK(tsl_epoch_charge(tsl_epoch_slot(root), 120));
  CHECK(tsl_epoch_charge(tsl_epoch_slot(leaf), 50));
  CHECK_EQ(at(leaf)->peak_bytes, 150);
  CHECK_EQ(at(root)->peak_bytes, 200);
  tsl_epoch_discharge(tsl_epoch_slot(root), 120);
  CHECK_EQ(at(root)->peak_bytes, 200);
}

// What the callback was told, and what it does when it is told of a hard limit.
static struct told {
  unsigned soft, hard;
  tslab_epoch epoch;
  size_t held_bytes, wanted_bytes;
  size_t gives_back;
  uint32_t gives_back_of;
} told;

static void on_limit(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                     size_t wanted_bytes, void *context) {
  CHECK(context == &told);
  CHECK(tsl_heap_current == &home->heap);
  *(limit == TSLAB_SOFT_LIMIT ? &told.soft : &told.hard) += 1;
  told.epoch = epoch;
  told.held_bytes = held_bytes;
  told.wanted_bytes = wanted_bytes;
  if (limit == TSLAB_HARD_LIMIT) tsl_epoch_discharge(told.gives_back_of, told.gives_back);
}

static tslab_epoch open_limited(tslab_epoch parent, size_t soft, size_t hard) {
  return open_with(&(tslab_epoch_options){.parent = parent,
                                          .soft_limit_bytes = soft,
                                          .hard_limit_bytes = hard,
                                          .on_limit = on_limit,
                                          .limit_context = &told});
}

static void hard_limit_refuses(void) {
  open_region();
  tslab_epoch id = open_with(&(tslab_epoch_options){.hard_limit_bytes = 100});
  uint32_t slot = tsl_epoch_slot(id);
  CHECK(!tsl_epoch_charge(slot, 101));
  CHECK_EQ(at(id)->held_bytes, 0);
  CHECK(tsl_epoch_charge(slot, 60));
  CHECK(!tsl_epoch_charge(slot, 41));
  CHECK(tsl_epoch_charge(slot, 40));
  CHECK(!tsl_epoch_charge(slot, 1));
  CHECK_EQ(at(id)->held_bytes, 100);
  tsl_epoch_discharge(slot, 1);
  CHECK(tsl_epoch_charge(slot, 1));
}

// The limit of an ancestor counts, and the epochs below it are as before.
static void hard_limit_of_an_ancestor_refuses(void) {
  open_region();
  tslab_epoch root = open_limited(TSLAB_DEFAULT, 0, 100);
  tslab_epoch middle = open_child(root), leaf = open_child(middle);
  CHECK(tsl_epoch_charge(tsl_epoch_slot(root), 30));
  CHECK(tsl_epoch_charge(tsl_epoch_slot(leaf), 50));
  CHECK(!tsl_epoch_charge(tsl_epoch_slot(leaf), 21));
  CHECK_EQ(told.hard, 1);
  CHECK_EQ(told.epoch, root);
  CHECK_EQ(told.held_bytes, 80);
  CHECK_EQ(told.wanted_bytes, 21);
  CHECK_EQ(at(leaf)->held_bytes, 50);
  CHECK_EQ(at(middle)->held_bytes, 50);
  CHECK_EQ(at(root)->held_bytes, 80);
  CHECK(tsl_epoch_charge(tsl_epoch_slot(leaf), 20));
}

// The callback makes room: it is tried once more, and not twice.
static void hard_limit_callback_makes_room(void) {
  open_region();
  tslab_epoch id = open_limited(TSLAB_DEFAULT, 0, 100);
  uint32_t slot = tsl_epoch_slot(id);
  struct tsl_heap *part = &tsl_part_take(home, slot)->heap;
  tsl_heap_current = part;
  told.gives_back_of = slot;
  CHECK(tsl_epoch_charge(slot, 90));
  told.gives_back = 10;
  CHECK(tsl_epoch_charge(slot, 20));
  CHECK(tsl_heap_current == part);
  CHECK_EQ(told.hard, 1);
  CHECK_EQ(told.epoch, id);
  CHECK_EQ(told.held_bytes, 90);
  CHECK_EQ(told.wanted_bytes, 20);
  CHECK_EQ(at(id)->held_bytes, 100);
  told.gives_back = 9;
  CHECK(!tsl_epoch_charge(slot, 10));
  CHECK_EQ(told.hard, 2);
  CHECK_EQ(at(id)->held_bytes, 91);
}

// Once, until it holds less again.
static void soft_limit_is_told_once(void) {
  open_region();
  tslab_epoch id = open_limited(TSLAB_DEFAULT, 100, 0);
  uint32_t slot = tsl_epoch_slot(id);
  CHECK(tsl_epoch_charge(slot, 100));
  CHECK_EQ(told.soft, 0);
  CHECK(tsl_epoch_charge(slot, 7));
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(told.epoch, id);
  CHECK_EQ(told.wanted_bytes, 7);
  CHECK(tsl_epoch_charge(slot, 50));
  tsl_epoch_discharge(slot, 56);
  CHECK(tsl_epoch_charge(slot, 1));
  CHECK_EQ(told.soft, 1);
  tsl_epoch_discharge(slot, 2);
  CHECK_EQ(at(id)->held_bytes, 100);
  CHECK(tsl_epoch_charge(slot, 1));
  CHECK_EQ(told.soft, 2);
  CHECK_EQ(told.hard, 0);
}

// tslab.h: `held_bytes` now, `wanted_bytes` more wanted; as for the hard limit.
static void soft_limit_tells_what_was_held_before(void) {
  open_region();
  uint32_t slot = tsl_epoch_slot(open_limited(TSLAB_DEFAULT, 100, 0));
  CHECK(tsl_epoch_charge(slot, 90));
  CHECK(tsl_epoch_charge(slot, 15));
  CHECK_EQ(told.wanted_bytes, 15);
  CHECK_EQ(told.held_bytes, 90);
}

static void soft_limit_of_an_ancestor_is_told(void) {
  open_region();
  tslab_epoch root = open_limited(TSLAB_DEFAULT, 100, 0), leaf = open_child(root);
  CHECK(tsl_epoch_charge(tsl_epoch_slot(leaf), 101));
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(told.epoch, root);
  tsl_epoch_discharge(tsl_epoch_slot(leaf), 1);
  CHECK(tsl_epoch_charge(tsl_epoch_slot(root), 1));
  CHECK_EQ(told.soft, 2);
}

// A charge that an ancestor refuses did not happen: the next one that does is told of.
static void soft_limit_is_told_after_a_refusal(void) {
  open_region();
  tslab_epoch root = open_with(&(tslab_epoch_options){.hard_limit_bytes = 1000});
  tslab_epoch leaf = open_limited(root, 100, 0);
  uint32_t slot = tsl_epoch_slot(leaf);
  CHECK(tsl_epoch_charge(slot, 50));
  CHECK(!tsl_epoch_charge(slot, 2000));
  unsigned before = told.soft;
  CHECK_EQ(at(leaf)->held_bytes, 50);
  CHECK(tsl_epoch_charge(slot, 60));
  CHECK_EQ(told.soft, before + 1);
}

// The next epoch in the slot has limits of its own.
static void limits_end_with_their_epoch(void) {
  open_region();
  end(open_limited(TSLAB_DEFAULT, 1, 2));
  uint32_t slot = tsl_epoch_slot(open_epoch());
  CHECK_EQ(slot, 1);
  CHECK(tsl_epoch_charge(slot, 1000));
  CHECK_EQ(told.soft + told.hard, 0);
}

int main(void) {
  RUN(charged_along_the_chain);
  RUN(the_peak_stays);
  RUN(hard_limit_refuses);
  RUN(hard_limit_of_an_ancestor_refuses);
  RUN(hard_limit_callback_makes_room);
  RUN(soft_limit_is_told_once);
  RUN(soft_limit_tells_what_was_held_before);
  RUN(soft_limit_of_an_ancestor_is_told);
  RUN(soft_limit_is_told_after_a_refusal);
  RUN(limits_end_with_their_epoch);
  return test_status();
}
