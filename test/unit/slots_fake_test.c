#include "heap/slots.h"

#include "records.h"

enum { EPOCHS = 40, TURNS = 3000 };

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
  CHECK_EQ(home->slot_count, TSL_HOME_SLOTS);
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
  tsl_heap_current = &tsl_home_empty.heap;
  end(id);
  tsl_heap_current = &home->heap;
  CHECK_EQ(home->slot_count, 0);
  CHECK_EQ(tsl_epoch_slot(open_epoch()), 1);
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

int main(void) {
  RUN(slots_are_used_again);
  RUN(slots_of_threads_without_a_heap);
  RUN(no_memory_for_a_slot);
  RUN(slots_come_to_an_end);
  return test_status();
}
