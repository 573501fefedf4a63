// What becomes of the sealed pieces of one epoch; poison_fake_test.c is about who asks for it.
#include "epoch/sweep.h"

#include "capture.h"
#include "epochs.h"
#include "os_fake.h"
#include "state/epoch.h"
#include "upkeep/remains.h"

// A cell is as large as any page.
enum { BYTES = 100, MANY = 3000, CELL_BYTES = 1 << 16 };

static void *blocks[MANY], *others[MANY];
static char *used;

static void use(void) { *(volatile char *)used = 1; }

static bool is_accessible(void *block) {
  used = block;
  return capture_child(use) == 0;
}

static tslab_epoch closed(void **into, size_t first_cell_bytes) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_alloc_many(into, epoch, BYTES, MANY);
  epochs_close(epoch, MANY);
  return epoch;
}

static void check_protects(size_t first_cell_bytes) {
  os_fake.limit_bytes = (size_t)1 << 29;
  uint32_t slot = tsl_epoch_slot(closed(blocks, first_cell_bytes));
  (void)closed(others, first_cell_bytes);
  CHECK(tsl_sweep_protect(slot, true));
  CHECK(!is_accessible(blocks[0]) && !is_accessible(blocks[MANY - 1]));
  CHECK(is_accessible(others[0]) && is_accessible(others[MANY - 1]));
  CHECK(tsl_sweep_protect(slot, false));
  CHECK(is_accessible(blocks[0]) && is_accessible(blocks[MANY - 1]));
}

static void cells_are_protected(void) { check_protects(CELL_BYTES); }
static void slabs_are_protected(void) { check_protects(TSLAB_NO_CELLS); }

static void a_refusal_is_told(void) {
  os_fake.limit_bytes = (size_t)1 << 29;
  uint32_t slot = tsl_epoch_slot(closed(blocks, CELL_BYTES));
  os_fake_fail_next(OS_FAKE_GUARD);
  CHECK(!tsl_sweep_protect(slot, true));
}

static void all_goes_back(void) {
  os_fake.limit_bytes = (size_t)1 << 29;
  tslab_epoch cells = closed(blocks, CELL_BYTES), slabs = closed(others, TSLAB_NO_CELLS);
  tsl_sweep_give(tsl_epoch_slot(cells));
  CHECK(epochs_is_over(cells));
  epochs_free_many(others, BYTES, MANY - 1);
  tsl_sweep_give(tsl_epoch_slot(slabs));
  CHECK(epochs_is_over(slabs));
  epochs_check_all_free();
}

int main(void) {
  RUN(cells_are_protected);
  RUN(slabs_are_protected);
  RUN(a_refusal_is_told);
  RUN(all_goes_back);
  return test_status();
}
