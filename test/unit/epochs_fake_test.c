#include "tell/epochs.h"

#include "epochs.h"
#include "state/history.h"
#include "takes.h"
#include "tellers.h"
#include "told.h"

// By class, whatever part of them lay in cells and in slabs.
static void survivors_are_told_until_they_are_freed(size_t first_cell_bytes) {
  enum { COUNT = 300 };
  void *small[COUNT], *medium[COUNT];
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(small, epoch, 48, COUNT);
  epochs_alloc_many(medium, epoch, 2000, COUNT);
  check_told(epoch, 2 * COUNT, COUNT * (takes(48) + takes(2000)));
  for (unsigned i = 0; i < 100; i++) epochs_free(small[i], 48);
  os_fake.now_ms = 7777;
  epochs_close(epoch, 2 * COUNT - 100);
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->state, TSLAB_CLOSED);
  CHECK_EQ(row->closed_ms, 7777);
  CHECK_EQ(row->survivors[takes_class(48)], COUNT - 100);
  CHECK_EQ(row->survivors[takes_class(2000)], COUNT);
  for (unsigned i = 100; i < COUNT - 1; i++) epochs_free(small[i], 48);
  be(other);
  for (unsigned i = 0; i < COUNT; i++) epochs_free(medium[i], 2000);
  check_told(epoch, 1, takes(48));
  CHECK_EQ(tslab_usable_size(small[COUNT - 1]), 48);
  epochs_free(small[COUNT - 1], 48);
  CHECK_EQ(row->id, 0);
  CHECK_EQ(row->held_bytes, 0);
  be(mine);
}

#define OPEN_LABELLED(label, ...) \
  tslab_epoch_open(label, &(tslab_epoch_options){.size = sizeof(tslab_epoch_options), __VA_ARGS__})

static const struct tsl_labels_row *label_row_of(tslab_epoch epoch) {
  const struct tsl_labels_row *row = TSL_ROW(labels, tsl_epoch_at(tsl_epoch_slot(epoch))->label);
  CHECK(row != NULL);
  if (row == NULL) abort();
  return row;
}

// The label of the epoch whose limit it was, and that of the epoch that wanted memory.
static void refusals_are_told_by_label(void) {
  open_homes();
  tslab_epoch tenant = OPEN_LABELLED("tenant", .hard_limit_bytes = 4096);
  tslab_epoch request = OPEN_LABELLED("request", .parent = tenant);
  CHECK(tslab_epoch_malloc(request, (size_t)1 << 20) == NULL);
  CHECK(tslab_epoch_malloc(request, (size_t)1 << 20) == NULL);
  CHECK_EQ(strcmp(label_row_of(tenant)->text, "tenant"), 0);
  CHECK_EQ(label_row_of(tenant)->limits_refused, 2);
  CHECK_EQ(label_row_of(tenant)->memory_refused, 0);
  CHECK_EQ(((struct tsl_labels_row *)TSL_ROW(labels, 0))->limits_refused, 0);
  tslab_epoch other_request = OPEN_LABELLED("request", .parent = TSLAB_DEFAULT);
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tslab_epoch_malloc(other_request, (size_t)1 << 27) == NULL);
  CHECK(tsl_fast_malloc((size_t)1 << 27) == NULL);
  os_fake_recover();
  CHECK_EQ(label_row_of(other_request)->memory_refused, 1);
  CHECK_EQ(label_row_of(other_request)->limits_refused, 0);
  CHECK_EQ(((struct tsl_labels_row *)TSL_ROW(labels, 0))->memory_refused, 1);
}

// Of each label alone; what an epoch had before there was a file is told, too.
static void what_became_of_labels_epochs_is_told(void) {
  open_homes();
  os_fake.now_ms = 1000;
  tslab_epoch kept = OPEN_LABELLED("kept", .place = TSLAB_PLACE_OWN);
  tslab_epoch gone = OPEN_LABELLED("gone", .place = TSLAB_PLACE_OWN);
  void *block = epochs_alloc(kept, 1000);
  epochs_alloc(gone, 1000);
  const struct tsl_labels_row *row = label_row_of(kept), *other_row = label_row_of(gone);
  size_t held_bytes = tsl_epoch_at(tsl_epoch_slot(kept))->held_bytes;
  os_fake.now_ms = 1300;
  epochs_close(kept, 1);
  CHECK_EQ(row->ended, 1);
  CHECK_EQ(row->ended_bytes, held_bytes);
  CHECK_EQ(row->ended_survivor_bytes, takes(1000));
  CHECK_EQ(row->ended_pinned_bytes, held_bytes);
  CHECK_EQ(row->ended_lived_ms, 300);
  CHECK_EQ(other_row->ended + other_row->released, 0);
  CHECK_EQ(tslab_epoch_release(gone), 0);
  CHECK_EQ(other_row->released, 1);
  CHECK_EQ(row->released, 0);
  epochs_free(block, 1000);
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) {
    kept = OPEN_LABELLED("kept", .place = TSLAB_PLACE_OWN);
    epochs_free(epochs_alloc(kept, 1000), 1000);
    CHECK_EQ(row->shares, i + 1 >= TSL_HISTORY_ENOUGH);
    epochs_close(kept, 0);
  }
  CHECK_EQ(row->shares, 1);
}

static void survivors_in_cells(void) {
  open_homes();
  survivors_are_told_until_they_are_freed(0);
}

static void survivors_in_slabs(void) {
  open_homes();
  survivors_are_told_until_they_are_freed(TSLAB_NO_CELLS);
}

static void released_survivors_leave_no_trace(void) {
  open_homes();
  void *blocks_of_it[50];
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks_of_it, epoch, 48, 50);
  epochs_close(epoch, 50);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  tslab_epoch next = epochs_open();
  CHECK_EQ(tsl_epoch_slot(next), tsl_epoch_slot(epoch));
  epochs_alloc(next, 48);
  check_told(next, 1, takes(48));
}

static void parents_hold_what_children_hold(void) {
  open_homes();
  tslab_epoch parent = epochs_open(), child = EPOCHS_OPEN(.parent = parent);
  void *block = epochs_alloc(child, 100);
  const struct tsl_epochs_row *parents = TSL_ROW(epochs, tsl_epoch_slot(parent)),
                              *childs = TSL_ROW(epochs, tsl_epoch_slot(child));
  CHECK_EQ(parents->held_bytes, childs->held_bytes);
  CHECK_EQ(childs->parent, tsl_epoch_slot(parent));
  CHECK_EQ(parents->id, parent);
  epochs_free(block, 100);
  epochs_close(child, 0);
  CHECK_EQ(parents->held_bytes, 0);
}

static void large_blocks_are_told(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, 100000);
  check_told(epoch, 1, 131072);
  block = tslab_realloc(block, 400000);
  CHECK(block != NULL);
  check_told(epoch, 1, 458752);
  epochs_close(epoch, 1);
  check_told(epoch, 1, 458752);
  tslab_free(block);
  CHECK_EQ(((struct tsl_epochs_row *)TSL_ROW(epochs, tsl_epoch_slot(epoch)))->large_bytes, 0);
}

static void limits_are_told_as_they_are_now(void) {
  enum { MIB = 1 << 20 };
  open_homes();
  tslab_epoch epoch = EPOCHS_OPEN(.soft_limit_bytes = 3 * MIB, .hard_limit_bytes = 4 * MIB);
  epochs_alloc(epoch, 100);
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK(row->soft_limit_bytes == 3 * MIB && row->hard_limit_bytes == 4 * MIB);
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, 5 * MIB), 0);
  CHECK(row->soft_limit_bytes == 0 && row->hard_limit_bytes == 5 * MIB);
}

static const struct tsl_epochs_row *row_of(tslab_epoch epoch) {
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->id, epoch);
  return row;
}

static uint32_t state_before;

static void look_at_state(void *row) { state_before = ((const struct tsl_epochs_row *)row)->state; }

// Its row is written before what may take long.
static void a_slow_end_is_told_first(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  const struct tsl_epochs_row *row = row_of(epoch);
  CHECK_EQ(tslab_epoch_defer(epoch, look_at_state, (void *)(uintptr_t)row), 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(state_before, TSLAB_RELEASED);
  epoch = epochs_open();
  epochs_alloc(epoch, 100);
  CHECK_EQ(tslab_epoch_defer(epoch, look_at_state, (void *)(uintptr_t)row_of(epoch)), 0);
  epochs_close(epoch, 1);
  CHECK_EQ(state_before, TSLAB_CLOSED);
}

// Its memory waits, and nothing else is written until that goes back.
static void one_that_is_poisoned_is_told_as_ended(void) {
  open_homes();
  tsl_epochs_wait = true;
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(row_of(epoch)->state, TSLAB_RELEASED);
}

// It holds what its child does, and stays with it.
static void one_that_shares_is_told_as_ended(void) {
  open_homes();
  tslab_epoch parent = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  tslab_epoch child = EPOCHS_OPEN(.parent = parent);
  void *block = epochs_alloc(child, 100);
  CHECK(row_of(parent)->held_bytes != 0);
  os_fake.now_ms = 6666;
  epochs_close(parent, 0);
  CHECK_EQ(row_of(parent)->state, TSLAB_CLOSED);
  CHECK_EQ(row_of(parent)->closed_ms, 6666);
  epochs_close(child, 1);
  const struct tsl_epochs_row *row = row_of(parent);
  epochs_free(block, 100);
  CHECK_EQ(row->id, 0);
}

static void one_with_a_thread_inside_is_told_as_ended(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  CHECK(tslab_malloc(100) != NULL);
  be(other);
  os_fake.now_ms = 6666;
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(row_of(epoch)->state, TSLAB_RELEASED);
  CHECK_EQ(row_of(epoch)->closed_ms, 6666);
  be(mine);
}

int main(void) {
  RUN(limits_are_told_as_they_are_now);
  RUN(refusals_are_told_by_label);
  RUN(what_became_of_labels_epochs_is_told);
  RUN(survivors_in_cells);
  RUN(survivors_in_slabs);
  RUN(released_survivors_leave_no_trace);
  RUN(parents_hold_what_children_hold);
  RUN(large_blocks_are_told);
  RUN(a_slow_end_is_told_first);
  RUN(one_that_is_poisoned_is_told_as_ended);
  RUN(one_that_shares_is_told_as_ended);
  RUN(one_with_a_thread_inside_is_told_as_ended);
  return test_status();
}
