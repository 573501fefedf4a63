#include "heap/hold.h"

#include "heap/charge.h"
#include "records.h"
#include "tell/rows.h"
#include "upkeep/reports.h"

enum { EPOCHS = 40, TURNS = 3000 };

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

// A thread that a fork took had charged it for memory that it never got.
static void lost_bytes_are_told_no_more(void) {
  open_region();
  tsl_report_start();
  tslab_epoch id = open_epoch();
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(id));
  CHECK(tsl_epoch_charge(tsl_epoch_slot(id), 4096));
  CHECK_EQ(row->id, id);
  end(id);
  CHECK_EQ(at(id)->held_bytes, 0);
  CHECK(row->id == 0 && row->held_bytes == 0);
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

int main(void) {
  RUN(generations);
  RUN(last_drain_retires);
  RUN(lost_bytes_are_told_no_more);
  RUN(children_keep_their_parents);
  RUN(generations_of_parents_retire);
  return test_status();
}
