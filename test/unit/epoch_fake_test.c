#include "epoch/epoch.h"

#include "epoch/heap.h"
#include "epoch/pool.h"
#include "memory/growth.h"
#include "os_fake.h"
#include "state.h"
#include "threads.h"

enum { EPOCHS = 40, TURNS = 3000 };

static struct tsl_heap *home;

static void open_region(void) {
  os_fake.limit_bytes = (size_t)1 << 26;
  os_fake.now_ms = 1000;
  CHECK(tsl_region_init());
  tsl_epoch_init();
  home = tsl_heap_take();
  CHECK(home != NULL);
  tsl_heap_current = home;
}

static tslab_epoch open_with(const tslab_epoch_options *options) {
  tslab_epoch id = TSLAB_NO_EPOCH;
  CHECK_EQ(tsl_epoch_open(7, options, &id), 0);
  CHECK(id != TSLAB_NO_EPOCH && id != TSLAB_DEFAULT);
  CHECK_EQ(tsl_epoch_check(id), 0);
  return id;
}

static tslab_epoch open_epoch(void) { return open_with(&(tslab_epoch_options){0}); }

static tslab_epoch open_child(tslab_epoch parent) {
  return open_with(&(tslab_epoch_options){.parent = parent});
}

static struct tsl_epoch *at(tslab_epoch id) { return tsl_epoch_at(tsl_epoch_slot(id)); }

// Ends an epoch that has neither heaps nor large blocks.
static void end(tslab_epoch id) {
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_CLOSED), 0);
  tsl_epoch_drain(tsl_epoch_slot(id), 1);
}

static void default_epoch(void) {
  open_region();
  CHECK_EQ(tsl_epoch_check(TSLAB_DEFAULT), 0);
  CHECK(tsl_epoch_find(TSLAB_DEFAULT) == tsl_epoch_at(0));
  CHECK_EQ(tsl_epoch_at(0)->heaps, TSL_EPOCH_ENDED);
  CHECK_EQ(tsl_epoch_end(TSLAB_DEFAULT, TSL_EPOCH_CLOSED), EPERM);
  CHECK_EQ(tsl_epoch_end(TSLAB_DEFAULT, TSL_EPOCH_RELEASED), EPERM);
  CHECK_EQ(tsl_epoch_check(TSLAB_DEFAULT), 0);
  CHECK(tsl_epoch_charge(0, SIZE_MAX));
  tsl_epoch_discharge(0, 5);
  CHECK_EQ(tsl_epoch_at(0)->held_bytes, 0);
}

static void opened_with_options(void) {
  open_region();
  tslab_epoch parent = open_epoch();
  tslab_epoch_options options = {.parent = parent,
                                 .soft_limit_bytes = 3,
                                 .hard_limit_bytes = 4,
                                 .limit_context = home,
                                 .purge = TSLAB_PURGE_NOW};
  const struct tsl_epoch *epoch = at(open_with(&options));
  CHECK_EQ(epoch->parent, tsl_epoch_slot(parent));
  CHECK_EQ(epoch->label, 7);
  CHECK_EQ(epoch->soft_limit, 3);
  CHECK_EQ(epoch->hard_limit, 4);
  CHECK(epoch->limit_context == home);
  CHECK_EQ(epoch->purge, TSLAB_PURGE_NOW);
  CHECK_EQ(epoch->opened_ms, 1000);
  CHECK_EQ(epoch->undrained, 1);
  CHECK_EQ(epoch->heaps, 0);
  CHECK(at(parent)->soft_limit == SIZE_MAX && at(parent)->hard_limit == SIZE_MAX);
  state_check();
}

static void check_cells(size_t first_cell_bytes, unsigned threads, unsigned first,
                        unsigned largest) {
  tslab_epoch_options options = {.first_cell_bytes = first_cell_bytes, .threads = threads};
  const struct tsl_epoch *epoch = at(open_with(&options));
  CHECK_EQ(epoch->first_cell, TSL_SECURE ? (unsigned)TSL_BINS : first);
  if (!TSL_SECURE) CHECK_EQ(epoch->largest_cell, largest);
}

static void cells_by_options(void) {
  open_region();
  check_cells(0, 0, TSL_CELL_4K, TSL_CELL_64K);
  check_cells(4096, 2, TSL_CELL_4K, TSL_CELL_64K);
  check_cells(4097, 3, TSL_CELL_16K, TSL_CELL_16K);
  check_cells(16384, 8, TSL_CELL_16K, TSL_CELL_16K);
  check_cells(16385, 8, TSL_CELL_64K, TSL_CELL_64K);
  check_cells(0, 9, TSL_CELL_4K, TSL_CELL_4K);
  check_cells(65536, 9, TSL_CELL_64K, TSL_CELL_64K);
  check_cells(65537, 9, TSL_BINS, TSL_CELL_4K);
  check_cells(TSLAB_NO_CELLS, 0, TSL_BINS, TSL_CELL_64K);
}

// E1: ids that never were, or whose epoch is over, match nothing.
static void stale_ids(void) {
  open_region();
  tslab_epoch id = open_epoch();
  uint32_t slot = tsl_epoch_slot(id);
  tslab_epoch generation = (tslab_epoch)1 << TSL_EPOCH_SLOT_BITS;
  tslab_epoch strangers[] = {TSLAB_NO_EPOCH,  slot,          id + 1,  id + generation, generation,
                             id - generation, id | 1u << 23, slot + 1};
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
    check_context_set("id %llx", (unsigned long long)strangers[i]);
    CHECK(tsl_epoch_find(strangers[i]) == NULL);
    CHECK_EQ(tsl_epoch_check(strangers[i]), ESTALE);
    CHECK_EQ(tsl_epoch_end(strangers[i], TSL_EPOCH_CLOSED), ESTALE);
  }
  CHECK(tsl_epoch_find(id) == at(id));
  end(id);
  CHECK(tsl_epoch_find(id) == NULL);
  CHECK_EQ(tsl_epoch_check(id), ESTALE);
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_RELEASED), ESTALE);
  CHECK(!tsl_epoch_claim_release(id));
}

// A slot is used again, and each time its ids are others.
static void generations(void) {
  static tslab_epoch ids[TURNS];
  open_region();
  for (int turn = 0; turn < TURNS; turn++) {
    ids[turn] = open_epoch();
    CHECK_EQ(tsl_epoch_slot(ids[turn]), 1);
    CHECK_EQ(ids[turn], ((tslab_epoch)turn + 1) << TSL_EPOCH_SLOT_BITS | 1);
    if (turn % 100 == 0) {
      for (int i = 0; i < turn; i++) CHECK(tsl_epoch_find(ids[i]) == NULL);
    }
    end(ids[turn]);
  }
  CHECK_EQ(tsl_region.last_epoch, 1);
}

// A thread keeps a few slots; further ones are everybody's.
static void slots_are_used_again(void) {
  tslab_epoch ids[EPOCHS];
  bool seen[EPOCHS + 1] = {false};
  open_region();
  for (int i = 0; i < EPOCHS; i++) {
    ids[i] = open_epoch();
    CHECK_EQ(tsl_epoch_slot(ids[i]), i + 1);
  }
  for (int i = 0; i < EPOCHS; i++) end(ids[i]);
  CHECK_EQ(home->slot_count, TSL_HEAP_SLOTS);
  for (int i = 0; i < EPOCHS; i++) {
    uint32_t slot = tsl_epoch_slot(open_epoch());
    CHECK(slot >= 1 && slot <= EPOCHS && !seen[slot]);
    seen[slot] = true;
  }
  CHECK_EQ(home->slot_count, 0);
  CHECK_EQ(tsl_region.last_epoch, EPOCHS);
  CHECK_EQ(tsl_epoch_slot(open_epoch()), EPOCHS + 1);
}

// A thread without a heap keeps no slots.
static void slots_of_threads_without_a_heap(void) {
  open_region();
  tslab_epoch id = open_epoch();
  tsl_heap_current = &tsl_heap_empty;
  end(id);
  tsl_heap_current = home;
  CHECK_EQ(home->slot_count, 0);
  CHECK_EQ(tsl_epoch_slot(open_epoch()), 1);
}

static void ended_once(void) {
  open_region();
  tslab_epoch id = open_epoch();
  os_fake.now_ms = 1234;
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_CLOSED), 0);
  CHECK_EQ(at(id)->closed_ms, 1234);
  CHECK_EQ(tsl_epoch_check(id), ECANCELED);
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_CLOSED), ECANCELED);
  CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_RELEASED), ECANCELED);
  CHECK_EQ(tsl_epoch_state(at(id)->word), TSL_EPOCH_CLOSED);
  CHECK(tsl_epoch_find(id) == at(id));
  tsl_epoch_drain(tsl_epoch_slot(id), 1);
  CHECK_EQ(tsl_epoch_check(id), ESTALE);
}

static void released_after_it_was_closed(void) {
  open_region();
  tslab_epoch id = open_epoch();
  uint32_t slot = tsl_epoch_slot(id);
  tsl_add_relaxed(&at(id)->undrained, 1);  // as if a cell lived on
  end(id);
  CHECK(tsl_epoch_claim_release(id));
  CHECK_EQ(tsl_epoch_state(at(id)->word), TSL_EPOCH_RELEASED);
  CHECK_EQ(at(id)->undrained, 2);
  CHECK(!tsl_epoch_claim_release(id));
  CHECK_EQ(at(id)->undrained, 2);
  CHECK_EQ(tsl_epoch_check(id), ECANCELED);
  tsl_epoch_drain(slot, 1);
  CHECK_EQ(tsl_epoch_check(id), ECANCELED);
  tsl_epoch_drain(slot, 1);
  CHECK_EQ(tsl_epoch_check(id), ESTALE);
  tslab_epoch next = open_epoch();
  CHECK_EQ(tsl_epoch_slot(next), slot);
  CHECK(!tsl_epoch_claim_release(id));
  CHECK_EQ(tsl_epoch_check(next), 0);
  CHECK_EQ(at(next)->undrained, 1);
}

// E2: the last one retires it, whoever that is; what was counted of it is forgotten.
static void last_drain_retires(void) {
  open_region();
  tslab_epoch id = open_epoch();
  struct tsl_epoch *epoch = at(id);
  epoch->undrained += 5;
  epoch->late = 3;
  epoch->soft_told = 1;
  end(id);
  tsl_epoch_drain(tsl_epoch_slot(id), 2);
  tsl_epoch_drain(tsl_epoch_slot(id), 2);
  CHECK_EQ(tsl_epoch_check(id), ECANCELED);
  CHECK_EQ(epoch->undrained, 1);
  tsl_epoch_drain(tsl_epoch_slot(id), 1);
  CHECK_EQ(tsl_epoch_check(id), ESTALE);
  CHECK_EQ(tsl_epoch_state(epoch->word), TSL_EPOCH_FREE);
  CHECK(epoch->late == 0 && epoch->soft_told == 0);
}

static void children_keep_their_parents(void) {
  open_region();
  tslab_epoch parent = open_epoch(), first = open_child(parent), second = open_child(parent);
  CHECK_EQ(at(parent)->children, 2);
  CHECK_EQ(at(parent)->undrained, 3);
  state_check();
  end(parent);
  CHECK_EQ(tsl_epoch_check(parent), ECANCELED);
  end(first);
  CHECK_EQ(at(parent)->children, 1);
  CHECK_EQ(tsl_epoch_check(parent), ECANCELED);
  end(second);
  CHECK_EQ(tsl_epoch_check(parent), ESTALE);
  CHECK_EQ(at(parent)->children, 0);
}

// The end of the innermost one is the end of all that waited for it.
static void generations_of_parents_retire(void) {
  tslab_epoch ids[EPOCHS];
  open_region();
  ids[0] = open_epoch();
  for (int i = 1; i < EPOCHS; i++) ids[i] = open_child(ids[i - 1]);
  for (int i = 0; i < EPOCHS - 1; i++) end(ids[i]);
  for (int i = 0; i < EPOCHS - 1; i++) CHECK_EQ(tsl_epoch_check(ids[i]), ECANCELED);
  end(ids[EPOCHS - 1]);
  for (int i = 0; i < EPOCHS; i++) CHECK_EQ(tsl_epoch_check(ids[i]), ESTALE);
}

static void no_child_of_an_ended_parent(void) {
  open_region();
  tslab_epoch parent = open_epoch(), child = open_child(parent), id = TSLAB_NO_EPOCH;
  tslab_epoch_options options = {.parent = parent};
  end(parent);
  uint32_t slots = home->slot_count;
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ECANCELED);
  CHECK_EQ(id, TSLAB_NO_EPOCH);
  CHECK_EQ(home->slot_count, slots + 1);
  CHECK_EQ(at(parent)->children, 1);
  CHECK_EQ(at(parent)->undrained, 1);
  end(child);
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ECANCELED);  // it has retired
  tslab_epoch next = open_epoch();
  CHECK_EQ(tsl_epoch_check(next), 0);
  CHECK_EQ(at(next)->undrained, 1);
}

// A parent whose slot bears another epoch meanwhile.
static void no_child_of_a_stale_parent(void) {
  open_region();
  tslab_epoch parent = open_epoch(), id = TSLAB_NO_EPOCH;
  end(parent);
  tslab_epoch next = open_epoch();
  CHECK_EQ(tsl_epoch_slot(next), tsl_epoch_slot(parent));
  tslab_epoch_options options = {.parent = parent};
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ECANCELED);
  CHECK_EQ(at(next)->undrained, 1);
  CHECK_EQ(at(next)->children, 0);
  CHECK_EQ(tsl_epoch_check(next), 0);
}

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
  CHECK(tsl_heap_current == home);
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
  struct tsl_heap *part = tsl_heap_take_part(home, slot);
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

static void no_memory_for_a_slot(void) {
  tslab_epoch id = TSLAB_NO_EPOCH;
  tslab_epoch_options options = {0};
  unsigned count = 0;
  open_region();
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_epoch_open(0, &options, &id) == 0) CHECK_LE(++count, 1000);
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ENOMEM);
  CHECK_EQ(count, tsl_region.last_epoch);
  uint32_t last = tsl_region.last_epoch;
  os_fake_recover();
  CHECK_EQ(tsl_epoch_slot(open_epoch()), last + 1);
}

static void slots_come_to_an_end(void) {
  tslab_epoch id, last = 0;
  tslab_epoch_options options = {0};
  open_region();
  size_t count = 1;
  for (; tsl_epoch_open(0, &options, &id) == 0; count++) last = id;
  CHECK_EQ(count, tsl_region.limit_epochs);
  end(last);
  CHECK_EQ(tsl_epoch_slot(open_epoch()), tsl_epoch_slot(last));
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ENOMEM);
}

// Threads open and end epochs and children of one, and charge them.
static tslab_epoch shared;
static uint32_t ended, refused;

static void *open_and_end(void *unused) {
  tsl_heap_current = tsl_heap_take();
  CHECK(tsl_heap_current != NULL);
  tslab_epoch_options options = {.parent = shared};
  for (int turn = 0; turn < TURNS; turn++) {
    tslab_epoch id;
    int error = tsl_epoch_open(0, &options, &id);
    CHECK_EQ(error, 0);
    if (!tsl_epoch_charge(tsl_epoch_slot(id), 10)) {
      tsl_add_relaxed(&refused, 1);
    } else {
      tsl_epoch_discharge(tsl_epoch_slot(id), 10);
    }
    CHECK_EQ(tsl_epoch_end(id, TSL_EPOCH_RELEASED), 0);
    tsl_epoch_drain(tsl_epoch_slot(id), 1);
    CHECK_EQ(tsl_epoch_check(id), ESTALE);
  }
  return unused;
}

static void *end_shared(void *unused) {
  if (tsl_epoch_end(shared, TSL_EPOCH_CLOSED) == 0) tsl_add_relaxed(&ended, 1);
  return unused;
}

static void many_threads(void) {
  open_region();
  shared = open_with(&(tslab_epoch_options){.hard_limit_bytes = 1000});
  threads_run(open_and_end, NULL);
  CHECK_EQ(refused, 0);
  CHECK_EQ(at(shared)->undrained, 1);
  CHECK_EQ(at(shared)->children, 0);
  CHECK_EQ(at(shared)->held_bytes, 0);
  CHECK_LE(tsl_region.last_epoch, 1 + THREADS);
  threads_run(end_shared, NULL);
  CHECK_EQ(ended, 1);
  tsl_epoch_drain(tsl_epoch_slot(shared), 1);
  CHECK_EQ(tsl_epoch_check(shared), ESTALE);
}

int main(void) {
  RUN(default_epoch);
  RUN(opened_with_options);
  RUN(cells_by_options);
  RUN(stale_ids);
  RUN(generations);
  RUN(slots_are_used_again);
  RUN(slots_of_threads_without_a_heap);
  RUN(ended_once);
  RUN(released_after_it_was_closed);
  RUN(last_drain_retires);
  RUN(children_keep_their_parents);
  RUN(generations_of_parents_retire);
  RUN(no_child_of_an_ended_parent);
  RUN(no_child_of_a_stale_parent);
  RUN(charged_along_the_chain);
  RUN(hard_limit_refuses);
  RUN(hard_limit_of_an_ancestor_refuses);
  RUN(hard_limit_callback_makes_room);
  RUN(soft_limit_is_told_once);
  RUN(soft_limit_tells_what_was_held_before);
  RUN(soft_limit_of_an_ancestor_is_told);
  RUN(soft_limit_is_told_after_a_refusal);
  RUN(limits_end_with_their_epoch);
  RUN(no_memory_for_a_slot);
  RUN(slots_come_to_an_end);
  RUN(many_threads);
  return test_status();
}
