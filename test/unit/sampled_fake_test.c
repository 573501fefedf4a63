#include "heap/sampled.h"

#include <string.h>

#include "capture.h"
#include "epoch/inspect.h"
#include "epoch/poison.h"
#include "heap/cells.h"
#include "heap/mixed.h"
#include "samples.h"

static void aligned_blocks_of_epochs_stay_aligned(void) {
  enum { COUNT = 2000, MOST_ALIGNMENT = 4096 };
  open_homes(MEAN);
  tslab_epoch epoch = epochs_open();
  for (unsigned i = 0; i < COUNT; i++) {
    size_t alignment = MOST_ALIGNMENT >> i % 4;
    void *block = tslab_epoch_aligned_alloc(epoch, alignment, 100);
    CHECK_EQ((uintptr_t)block % alignment, 0);
  }
  CHECK_GE(totals().live, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
}

static bool is_sampled(const void *block) {
  tsl_cell_number cell = tsl_is_cell(tsl_class_around(block)) ? tsl_cells_of(block) : 0;
  return cell != 0 && tsl_cell_at(cell)->sample != 0 && *tsl_cell_sample_of(cell, block) != 0;
}

// The sampled ones of the first `count` blocks go to the front. Returns how many.
static unsigned find_sampled(unsigned count) {
  unsigned found = 0;
  for (unsigned i = 0; i < count; i++)
    if (is_sampled(blocks[i])) blocks[found++] = blocks[i];
  return found;
}

static void small_blocks_share_cells(void) {
  enum { COUNT = 20000, BYTES = 64, A_CELL = 4096 / (BYTES + BYTES) };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  CHECK_GE(sampled, 5 * A_CELL);
  CHECK_EQ(totals().live, sampled);
  CHECK_LE(mine->cell_count, sampled / (A_CELL - 1) + 1);
  state_check();
  for (; sampled != 0; sampled--) {
    CHECK_EQ((uintptr_t)blocks[sampled - 1] % BYTES, 0);
    tsl_fast_free(blocks[sampled - 1]);
    CHECK_EQ(totals().live, sampled - 1);
  }
  CHECK_EQ(mine->cell_count, 0);
  state_check();
}

// Also where two share the place by which a thread finds its cell.
static void each_heap_has_cells_of_its_own(void) {
  enum { COUNT = 10000, BYTES = 64, EPOCHS = TSL_HOME_SAMPLES + 2 };
  open_homes(MEAN);
  tslab_epoch epochs[EPOCHS];
  for (unsigned i = 0; i < EPOCHS; i++) epochs[i] = epochs_open();
  for (unsigned i = 0; i < COUNT; i++) blocks[i] = tslab_epoch_malloc(epochs[i % EPOCHS], BYTES);
  for (unsigned i = 0; i < COUNT; i++)
    CHECK_EQ(tsl_inspect_slot_of(blocks[i]), tsl_epoch_slot(epochs[i % EPOCHS]));
  for (unsigned i = 0; i < EPOCHS; i++) {
    CHECK_GE(totals().live, 1);
    CHECK_EQ(tslab_epoch_release(epochs[i]), 0);
  }
  CHECK_EQ(totals().live, 0);
}

// The cell may be that of a larger block by then.
static void a_cell_that_went_back_takes_no_more(void) {
  enum { ROUNDS = 4000, SMALL = 1024, LARGE = 2048 };
  open_homes(MEAN);
  for (unsigned i = 0; i < ROUNDS; i++) {
    void *small = tsl_fast_malloc(SMALL);
    if (is_sampled(small)) tsl_fast_free(small);
    blocks[i] = tsl_fast_malloc(LARGE);
  }
  for (unsigned i = 0; i < ROUNDS; i++) {
    if (is_sampled(blocks[i])) CHECK_EQ(tsl_cell_at(tsl_cells_of(blocks[i]))->blocks, 1);
    tsl_fast_free(blocks[i]);
  }
  CHECK_EQ(totals().live, 0);
}

// The program has written before its block, where the number of the sample stands.
static void no_sample_of_another_block_ends(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  CHECK_GE(sampled, 2);
  const uint32_t *other_number = tsl_cell_sample_of(tsl_cells_of(blocks[1]), blocks[1]);
  *tsl_cell_sample_of(tsl_cells_of(blocks[0]), blocks[0]) = *other_number;
  tsl_fast_free(blocks[0]);
  CHECK_EQ(totals().live, sampled);
  CHECK(is_sampled(blocks[1]));
  tsl_fast_free(blocks[1]);
  CHECK_EQ(totals().live, sampled - 1);
}

static void a_second_free_ends_no_sample(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_homes(MEAN);
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  for (unsigned i = 0; i < 2; i++) {
    tsl_fast_free(blocks[0]);
    tsl_fast_free(blocks[0]);
    CHECK_EQ(totals().live, sampled - 1);
    be(other);
  }
  state_check();
}

// What stands before the address is the program's.
static void a_free_of_an_interior_address_writes_nothing(void) {
  enum { COUNT = 2000, BYTES = 512 };
  open_homes(MEAN);
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  alloc(COUNT, BYTES);
  unsigned sampled = 0;
  for (unsigned i = 0; i < COUNT; i++) {
    if (!is_sampled(blocks[i])) continue;
    sampled++;
    char *inside = (char *)blocks[i] + 64, before[16];
    memset(blocks[i], 7, BYTES);
    memset(before, 7, sizeof before);
    tsl_fast_free(inside);
    CHECK_EQ(memcmp(inside - sizeof before, before, sizeof before), 0);
  }
  CHECK_GE(sampled, 1);
  CHECK_EQ(totals().live, sampled);
}

// One that the program has written to is told by no event either.
static void events_are_of_the_block(void) {
  enum { COUNT = 4000, BYTES = 64 };
  tsl_options.sample_events = 1;
  os_fake.now_ns = 1000;
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  uint32_t spoiled = 1 + *tsl_cell_sample_of(tsl_cells_of(blocks[0]), blocks[0]);
  *tsl_cell_sample_of(tsl_cells_of(blocks[0]), blocks[0]) = spoiled;
  tsl_fast_free(blocks[0]);
  tsl_fast_free(blocks[1]);
  const struct tsl_events_row *first = TSL_ROW(events, sampled + 1);
  const struct tsl_events_row *second = TSL_ROW(events, sampled + 2);
  CHECK(first != NULL && second != NULL && first->at_ns != 0 && second->at_ns == 0);
}

static void open_poisoned(void) {
  os_fake.now_ms = 1000;
  tsl_options.release = TSL_RELEASE_POISON;
  tsl_poison_init();
  open_homes(MEAN);
}

// While their numbers can still be read.
static void samples_end_as_memory_is_poisoned(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_poisoned();
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, COUNT);
  CHECK_GE(totals().live, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
}

static void a_late_free_is_told(void) {
  enum { COUNT = 4000, BYTES = 64 };
  open_poisoned();
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, COUNT);
  CHECK_GE(find_sampled(COUNT), 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  capture_start();
  tsl_fast_free(blocks[0]);
  const char *said = capture_end();
  CHECK(strstr(said, "the block ended as its epoch was released or reset ") != NULL);
  CHECK_EQ(capture_lines(said), 1);
}

// Looks find them one after the other, however many live on before them.
static void looks_give_cells_back(void) {
  enum { COUNT = 4000, BYTES = 4096 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  uint32_t before = mine->cell_count;
  be(other);
  for (unsigned i = COUNT / 2; i < COUNT; i++) tsl_fast_free(blocks[i]);
  be(mine);
  for (unsigned i = 0; i < before; i++) tsl_cells_look(mine->home, TSL_CELLS_FEW);
  CHECK_EQ(mine->cell_count, totals().live);
  CHECK(mine->cell_count < before);
  state_check();
}

// Whoever has freed the last block of several.
static void looks_give_shared_cells_back(void) {
  enum { COUNT = 20000, BYTES = 64 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  unsigned sampled = find_sampled(COUNT);
  uint32_t before = mine->cell_count;
  for (unsigned i = 0; i < sampled; i++) {
    be(i % 3 == 0 ? mine : other);
    tsl_fast_free(blocks[i]);
  }
  be(mine);
  CHECK(before > 1 && mine->cell_count == before);
  for (unsigned i = 0; i < before; i++) tsl_cells_look(mine->home, TSL_CELLS_FEW);
  CHECK_EQ(mine->cell_count, 0);
  CHECK_EQ(totals().live, 0);
  state_check();
}

// A part in slabs hears by nothing else that another thread freed them.
static void a_part_in_slabs_keeps_few(void) {
  enum { ROUNDS = 100, COUNT = 200, BYTES = 1024 };
  open_homes(MEAN);
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    epochs_alloc_many(blocks, epoch, BYTES, COUNT);
    be(other);
    epochs_free_many(blocks, BYTES, COUNT);
    be(mine);
  }
  CHECK_GE(process()->samples_taken, 1000);
  CHECK_EQ(totals().live, 0);
  const struct tsl_heap *part = tsl_heap_at(mine->home->family);
  CHECK_EQ(part->epoch, tsl_epoch_slot(epoch));
  CHECK_LE(part->cell_count, COUNT);
  state_check();
}

// The owner frees them in a scope, too.
static void a_scope_does_not_matter(void) {
  enum { COUNT = 4000, BYTES = 1024 };
  open_homes(MEAN);
  alloc(COUNT, BYTES);
  tslab_scope scope;
  epochs_enter(&scope, epochs_open());
  free_all(COUNT, BYTES);
  epochs_leave(&scope);
  CHECK_EQ(mine->cell_count, 0);
  CHECK_EQ(totals().live, 0);
}

// Keeps every nth of many blocks. Returns how many of these are sampled.
static unsigned keep_each(tslab_epoch epoch, unsigned count, size_t bytes, unsigned nth) {
  unsigned sampled = 0;
  epochs_alloc_many(blocks, epoch, bytes, count);
  for (unsigned i = 0; i < count; i += nth) {
    CHECK_EQ(tslab_epoch_keep(blocks[i]), 0);
    sampled += is_sampled(blocks[i]);
  }
  return sampled;
}

// A kept block stays sampled when its epoch ends, until it is freed; the samples of others end,
// also in the same cell.
static void what_is_spared_stays_sampled(void) {
  enum { COUNT = 4000, BYTES = 512, WAYS = 4 };
  open_homes(MEAN);
  for (unsigned way = 0; way < WAYS; way++) {
    unsigned nth = 1 + way % 2;
    bool closes_first = way >= 2;
    tslab_epoch epoch = epochs_open();
    unsigned kept = keep_each(epoch, COUNT, BYTES, nth);
    CHECK(kept != 0 && (nth == 1) == (kept == totals().live));
    if (closes_first) epochs_close(epoch, COUNT);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(totals().live, kept);
    for (unsigned i = 0; i < COUNT; i += nth) epochs_free(blocks[i], BYTES);
    CHECK_EQ(totals().live, 0);
    CHECK(epochs_is_over(epoch));
  }
}

static void limits_hold(void) {
  enum { LIMIT = 1 << 20 };
  open_homes(MEAN);
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = LIMIT);
  while (tslab_epoch_malloc(epoch, 1000) != NULL)
    CHECK_LE(tsl_epoch_at(tsl_epoch_slot(epoch))->held_bytes, LIMIT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(totals().live, 0);
  epochs_check_all_free();
}

enum { CELL_BYTES = 4096 };
static struct tsl_heap *limited;

// The next byte that is looked at is a point.
static void reach_point(void) { limited->home->own->points.distance = 0; }

// Takes the rest of what the epoch may hold, for a cell of its own, and leaves the heap in it.
static void fill_and_take_another(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                                  size_t bytes, void *context) {
  (void)limit, (void)held_bytes, (void)bytes, (void)context;
  tslab_scope scope;
  uintptr_t first = limited->cell_start;
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, (size_t)2 * CELL_BYTES), 0);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  tsl_points_mean = 0;
  while (limited->cell_start == first) CHECK(tsl_fast_malloc(64) != NULL);
  tsl_points_mean = MEAN;
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  CHECK(limited->cell_start > first);  // else an end that is reckoned from there would be right
  reach_point();
}

// Where a limit refuses the sampled block, and its callback has filled the cell, the next one is
// cut off the cell that is newest then.
static void a_callback_takes_another_cell(void) {
  open_homes(MEAN);
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = CELL_BYTES, .hard_limit_bytes = 6000,
                                  .on_limit = fill_and_take_another);
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  limited = tsl_heap_current;
  limited->home->own->points.distance = 1e9;
  CHECK(tsl_fast_malloc(64) != NULL);
  uintptr_t first = limited->cell_start;
  reach_point();
  tsl_mixed_redraw(limited);
  CHECK(limited->sampled_cell);
  uintptr_t block = (uintptr_t)tsl_fast_malloc(64);
  CHECK(limited->cell_start != first);
  CHECK_LE(limited->cell_start, block);
  CHECK_LE(block + 64, limited->cell_next);
  CHECK_LE(limited->cell_next, limited->cell_end);
  CHECK_LE(limited->cell_end, limited->cell_start + CELL_BYTES);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

int main(void) {
  RUN_UNLESS_SECURE(aligned_blocks_of_epochs_stay_aligned);
  RUN_UNLESS_SECURE(small_blocks_share_cells);
  RUN_UNLESS_SECURE(each_heap_has_cells_of_its_own);
  RUN_UNLESS_SECURE(a_cell_that_went_back_takes_no_more);
  RUN_UNLESS_SECURE(no_sample_of_another_block_ends);
  RUN_UNLESS_SECURE(a_second_free_ends_no_sample);
  RUN_UNLESS_SECURE(a_free_of_an_interior_address_writes_nothing);
  RUN_UNLESS_SECURE(events_are_of_the_block);
  RUN_UNLESS_SECURE(samples_end_as_memory_is_poisoned);
  RUN_UNLESS_SECURE(a_late_free_is_told);
  RUN_UNLESS_SECURE(looks_give_cells_back);
  RUN_UNLESS_SECURE(looks_give_shared_cells_back);
  RUN_UNLESS_SECURE(a_part_in_slabs_keeps_few);
  RUN_UNLESS_SECURE(a_scope_does_not_matter);
  RUN_UNLESS_SECURE(what_is_spared_stays_sampled);
  RUN_UNLESS_SECURE(limits_hold);
  RUN_UNLESS_SECURE(a_callback_takes_another_cell);
  return test_status();
}
