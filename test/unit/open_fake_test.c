#include "epoch/open.h"

#include "heap/charge.h"
#include "records.h"
#include "threads.h"

enum { EPOCHS = 40, TURNS = 3000 };

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

static tslab_epoch open_name(uint32_t label, tslab_epoch place) {
  tslab_epoch id = TSLAB_NO_EPOCH;
  CHECK_EQ(tsl_epoch_open_sharing(label, tsl_epoch_slot(place), TSLAB_PURGE_DECAY, &id), 0);
  return id;
}

static void check_name(tslab_epoch id, uint32_t label, tslab_epoch place) {
  const struct tsl_epoch *epoch = at(id);
  CHECK_EQ(epoch->label, label);
  CHECK_EQ(epoch->place, tsl_epoch_slot(place));
  CHECK_EQ(epoch->heaps, TSL_EPOCH_ENDED);
  CHECK(epoch->soft_limit == SIZE_MAX && epoch->hard_limit == SIZE_MAX);
  CHECK(epoch->on_limit == NULL && epoch->user == NULL && epoch->deferred == NULL);
  CHECK_EQ(epoch->parent + epoch->host + epoch->level + epoch->is_shared + epoch->settled, 0);
  CHECK_EQ(epoch->peak_bytes + epoch->total_objects + epoch->total_bytes, 0);
  CHECK(epoch->extent_first == UINT32_MAX && epoch->extent_end == 0);
  CHECK_EQ(epoch->purge, TSLAB_PURGE_DECAY);
  CHECK_EQ(epoch->closed_ms, 0);
}

// What an epoch left in a record: the options of one with its own memory, and what a name did.
static void records_come_again_as_names(void) {
  open_region();
  tslab_epoch first = open_epoch(), second = open_epoch(), parent = open_epoch();
  tslab_epoch_options options = {
      .parent = parent, .soft_limit_bytes = 3, .hard_limit_bytes = 4, .purge = TSLAB_PURGE_NOW};
  tslab_epoch own = open_with(&options);
  uint32_t slot = tsl_epoch_slot(own);
  end(own);
  tslab_epoch name = open_name(8, first);
  CHECK_EQ(tsl_epoch_slot(name), slot);
  check_name(name, 8, first);
  at(name)->user = home;
  at(name)->peak_bytes = at(name)->total_objects = at(name)->total_bytes = 9;
  at(name)->extent_first = at(name)->extent_end = 9;
  at(name)->settled = 1;
  end(name);
  tslab_epoch again = open_name(8, first);
  CHECK_EQ(tsl_epoch_slot(again), slot);
  CHECK_NE(again, name);
  check_name(again, 8, first);
  end(again);
  tslab_epoch other = open_name(9, second);
  CHECK_EQ(tsl_epoch_slot(other), slot);
  check_name(other, 9, second);
  end(other);
  own = open_with(&options);
  CHECK_EQ(tsl_epoch_slot(own), slot);
  CHECK_EQ(at(own)->place, slot);
  CHECK_EQ(at(own)->heaps, 0);
  CHECK_EQ(at(own)->hard_limit, 4);
}

static tslab_epoch open_plain(uint32_t label) {
  tslab_epoch id = TSLAB_NO_EPOCH;
  CHECK_EQ(tsl_epoch_open(label, NULL, &id), 0);
  return id;
}

static void check_plain(tslab_epoch id, uint32_t label) {
  const struct tsl_epoch *epoch = at(id);
  CHECK_EQ(epoch->label, label);
  CHECK_EQ(epoch->place, tsl_epoch_slot(id));
  CHECK_EQ(epoch->heaps, 0);
  CHECK(epoch->soft_limit == SIZE_MAX && epoch->hard_limit == SIZE_MAX);
  CHECK(epoch->on_limit == NULL && epoch->user == NULL && epoch->deferred == NULL);
  CHECK_EQ(epoch->parent + epoch->host + epoch->level + epoch->is_shared + epoch->settled, 0);
  CHECK_EQ(epoch->first_cell, TSL_CELL_4K);
  CHECK_EQ(epoch->largest_cell, TSL_CELL_64K);
  CHECK_EQ(epoch->purge, TSLAB_PURGE_DECAY);
  CHECK(epoch->is_usual);
}

static void check_is_plain_again(const tslab_epoch_options *options) {
  tslab_epoch own = open_with(options);
  CHECK_EQ(at(own)->is_usual, options->parent != 0);
  end(own);
  tslab_epoch plain = open_plain(9);
  CHECK_EQ(tsl_epoch_slot(plain), tsl_epoch_slot(own));
  check_plain(plain, 9);
  end(plain);
}

static void never_called(tslab_epoch id TSL_UNUSED, enum tslab_limit limit TSL_UNUSED,
                         size_t held TSL_UNUSED, size_t bytes TSL_UNUSED,
                         void *context TSL_UNUSED) {}

// Nothing of the options, or of the name, that a record had before.
static void records_come_again_plain(void) {
  open_region();
  tslab_epoch first = open_plain(7), parent = open_plain(7);
  check_plain(first, 7);
  const tslab_epoch_options options[] = {{.parent = parent},
                                         {.soft_limit_bytes = 3},
                                         {.hard_limit_bytes = 4},
                                         {.on_limit = never_called},
                                         {.purge = TSLAB_PURGE_NOW},
                                         {.first_cell_bytes = 1 << 16},
                                         {.threads = 8},
                                         {.first_cell_bytes = 1 << 20}};
  for (unsigned i = 0; i < sizeof options / sizeof *options; i++) check_is_plain_again(&options[i]);
  tslab_epoch limited = open_plain(8);
  tsl_epoch_set_limits(tsl_epoch_slot(limited), 5, 6);
  end(limited);
  tslab_epoch plain = open_plain(9);
  CHECK_EQ(tsl_epoch_slot(plain), tsl_epoch_slot(limited));
  check_plain(plain, 9);
  end(plain);
  end(open_name(8, first));
  check_plain(open_plain(9), 9);
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
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ESTALE);  // it has retired
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
  CHECK_EQ(tsl_epoch_open(0, &options, &id), ESTALE);
  CHECK_EQ(at(next)->undrained, 1);
  CHECK_EQ(at(next)->children, 0);
  CHECK_EQ(tsl_epoch_check(next), 0);
}

// PL2 is for the shared epoch, not for who was in its slot before.
static void an_earlier_id_of_a_shared_epoch_is_stale(void) {
  open_region();
  tslab_epoch earlier = open_epoch(), shared_one;
  end(earlier);
  CHECK_EQ(tsl_epoch_open_shared(0, &shared_one), 0);
  CHECK_EQ(tsl_epoch_slot(shared_one), tsl_epoch_slot(earlier));
  CHECK_EQ(tsl_epoch_refuse(earlier), ESTALE);
  CHECK_EQ(tsl_epoch_end(earlier, TSL_EPOCH_CLOSED), ESTALE);
  CHECK_EQ(tsl_epoch_refuse(shared_one), EPERM);
  CHECK_EQ(tsl_epoch_end(shared_one, TSL_EPOCH_CLOSED), EPERM);
}

// Threads open and end epochs and children of one, and charge them.
static tslab_epoch shared;

static uint32_t ended, refused;

static void *open_and_end(void *unused) {
  tsl_heap_current = &tsl_home_take()->heap;
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
  RUN(records_come_again_as_names);
  RUN_UNLESS_SECURE(records_come_again_plain);
  RUN(cells_by_options);
  RUN(stale_ids);
  RUN(ended_once);
  RUN(released_after_it_was_closed);
  RUN(no_child_of_an_ended_parent);
  RUN(no_child_of_a_stale_parent);
  RUN(an_earlier_id_of_a_shared_epoch_is_stale);
  RUN(many_threads);
  return test_status();
}
