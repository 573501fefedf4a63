#include "heap/drained.h"

#include "heap/cells.h"
#include "seals.h"
#include "takes.h"

// Every piece goes back exactly once, whoever frees the last block of it.
static void drain_as(struct tsl_heap *freer, size_t first_cell_bytes) {
  open_epoch(first_cell_bytes);
  static const size_t sizes[] = {16, 100, 700, 3000, 9000, 30000};
  size_t bytes = 0;
  for (unsigned i = 0; i < 600; i++) alloc_many(sizes[i % 6], 1);
  for (unsigned i = 0; i < block_count; i++) bytes += takes_of(blocks[i]);
  struct tsl_survivors left = seal_as(home);
  CHECK_EQ(left.objects, block_count);
  CHECK_EQ(left.bytes, bytes);
  uint64_t seed = 3;
  for (unsigned rest = block_count; rest != 0; rest--) {
    unsigned pick = test_random_below(&seed, rest);
    CHECK_EQ(tsl_epoch_check(id), ECANCELED);
    free_as(freer, blocks[pick]);
    blocks[pick] = blocks[rest - 1];
    if (rest % 50 == 1) state_check();
    if (rest % 50 == 1 && rest != 1) state_check_undrained(slot);
  }
  check_over();
}

static void drained_by_the_owner(void) {
  open_homes();
  drain_as(home, 0);
  drain_as(home, TSLAB_NO_CELLS);
}

static void drained_by_another_thread(void) {
  open_homes();
  drain_as(other, 0);
  drain_as(other, TSLAB_NO_CELLS);
}

// One that frees before it ever allocates, or after its destructors ran.
static void slabs_drained_by_a_thread_without_a_heap(void) {
  open_homes();
  drain_as(&tsl_home_empty.heap, TSLAB_NO_CELLS);
}

static void cells_drained_by_a_thread_without_a_heap(void) {
  open_homes();
  drain_as(&tsl_home_empty.heap, 0);
}

// A thread inside another epoch.
static void drained_from_another_epoch(void) {
  open_all(0);
  alloc_many(100, 500);
  seal_as(home);
  tslab_epoch first = id;
  void *survivors[500];
  memcpy(survivors, blocks, sizeof survivors);
  open_epoch(0);
  void *block = alloc(64);
  for (unsigned i = 0; i < 500; i++) {
    CHECK_EQ(tsl_epoch_check(first), ECANCELED);
    tsl_fast_free(survivors[i]);
  }
  CHECK_EQ(tsl_epoch_check(first), ESTALE);
  CHECK_EQ(tsl_cells_block_class(block), takes_class(64));
  tsl_fast_free(block);
  check_survivors(seal_as(home), 0, 0, 0);
  check_over();
}

// The system does not take a guard away: the slab cannot go back, and nothing else is lost.
static void refused_guards(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(100, 300);
  for (unsigned i = 0; i < block_count; i++) tsl_fast_free(blocks[i]);
  os_fake_fail_all(OS_FAKE_GUARD);
  check_survivors(seal_as(home), 0, 0, 0);
  os_fake_recover();
  state_check_segments();
}

int main(void) {
  RUN(drained_by_the_owner);
  RUN(drained_by_another_thread);
  RUN(slabs_drained_by_a_thread_without_a_heap);
  RUN_UNLESS_SECURE(cells_drained_by_a_thread_without_a_heap);
  RUN_UNLESS_SECURE(drained_from_another_epoch);
  if (TSL_SECURE) RUN(refused_guards);
  return test_status();
}
