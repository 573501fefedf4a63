#include "tell/heaps.h"

#include "epochs.h"
#include "heap/rest.h"
#include "takes.h"
#include "tellers.h"
#include "told.h"
#include "upkeep/reports.h"

enum { MOST_LIVE = 600, EPOCHS = 6, STEPS = 6000, CHECK_EVERY = 50 };

static void threads_are_told(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_heaps_row *row = TSL_ROW(heaps, mine->number);
  tsl_report_heap(mine);
  CHECK_EQ(row->thread, 4712);
  CHECK_EQ(row->state, 1);
  CHECK_EQ(row->home, mine->number);
  tsl_fast_free(alloc(64));
  tsl_home_rest_all(mine->home);
  CHECK_GE(mine->home->unit_count, 1);
  tsl_report_heap(mine);
  CHECK_EQ(row->cached_units, mine->home->unit_count);
  be(&tsl_home_empty.heap);
  tsl_home_pool(mine->home);
  CHECK_EQ(row->thread, 0);
  CHECK_EQ(row->state, 2);
  CHECK_EQ(row->cached_units, 0);
}

// It says so at its first slow path.
static void a_home_from_the_pool_is_its_new_threads(void) {
  open_homes();
  tsl_report_start();
  be(&tsl_home_empty.heap);
  tsl_home_pool(mine->home);
  be(&tsl_home_take()->heap);
  CHECK(tsl_heap_current == mine);
  alloc(64);
  const struct tsl_heaps_row *row = TSL_ROW(heaps, mine->number);
  CHECK_EQ(row->thread, tsl_os_thread());
  CHECK_EQ(row->state, 1);
}

// An epoch in which the thread has two scopes and a block.
static tslab_epoch enter_twice(tslab_scope *outer, tslab_scope *inner) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_enter(outer, epoch);
  epochs_enter(inner, epoch);
  alloc(100);
  return epoch;
}

static void scopes_are_told_when_they_are_left_and_when_their_epoch_ends(void) {
  tslab_scope outer, inner;
  tslab_epoch epoch = enter_twice(&outer, &inner);
  const struct tsl_heaps_row *row = TSL_ROW(heaps, tsl_heap_current->number);
  epochs_leave(&inner);
  CHECK_EQ(row->scopes, 1);
  alloc(100);
  epochs_leave(&outer);
  CHECK_EQ(row->scopes, 0);
  epochs_enter(&outer, epoch);
  be(other);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(row->scopes, 1);
  CHECK_EQ(row->state, 1);
}

static void frees_from_outside_are_told_and_open_no_scope(void) {
  tslab_scope scope;
  open_homes();
  tsl_report_start();
  epochs_enter(&scope, EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS));
  const struct tsl_heaps_row *row = TSL_ROW(heaps, tsl_heap_current->number);
  const struct tsl_bins_row *bins = TSL_ROW(bins, tsl_heap_current->number);
  unsigned class = tsl_sizeclass_of(100);
  enum { MANY = 20000 };
  static void *blocks[MANY];
  for (unsigned i = 0; i < MANY; i++) blocks[i] = alloc(100);
  epochs_leave(&scope);
  uint32_t live = bins->out[class] - bins->hot[class];
  CHECK_EQ(live, MANY);
  for (unsigned i = 0; i < MANY; i++) {
    tsl_fast_free(blocks[i]);
    uint32_t untold = bins->out[class] - bins->hot[class] - (MANY - 1 - i);
    CHECK_LE(untold, i < 1024 ? i * 3 / 4 + 1 : 1023);
  }
  CHECK_EQ(row->scopes, 0);
}

static void check_frees_by_others(size_t first_cell_bytes, unsigned in_slabs) {
  tslab_scope scope;
  open_homes();
  tsl_report_start();
  epochs_enter(&scope, EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes));
  uint32_t part = tsl_heap_current->number;
  void *blocks[] = {alloc(100), alloc(100), alloc(100)};
  be(other);
  tsl_fast_free(blocks[0]);
  tsl_fast_free(blocks[1]);
  const struct tsl_heaps_row *row = TSL_ROW(heaps, part);
  const struct tsl_bins_row *bins = TSL_ROW(bins, part);
  CHECK_EQ(row->away_objects, 2);
  CHECK_EQ(bins->away[tsl_sizeclass_of(100)], in_slabs);
  tsl_report_part(tsl_part_of(tsl_heap_at(part)));
  CHECK_EQ(row->away_objects, 0);
  CHECK_EQ(bins->away[tsl_sizeclass_of(100)], 0);
}

// By class, until the part begins anew.
static void frees_of_a_parts_slabs_by_others_are_told(void) {
  check_frees_by_others(TSLAB_NO_CELLS, 2);
}

// In all alone. The secure build has no cells.
static void frees_of_a_parts_cells_by_others_are_told(void) { check_frees_by_others(4096, 0); }

static uint64_t told_objects(const struct tsl_heap *part) {
  return ((struct tsl_heaps_row *)TSL_ROW(heaps, part->number))->cut_objects;
}

// Leaves so many scopes, each `ms` after the last; in how many the thread told what it did.
static unsigned tell_of(tslab_epoch epoch, unsigned scopes, uint64_t ms) {
  unsigned told = 0;
  for (unsigned i = 0; i < scopes; i++) {
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    const struct tsl_heap *part = tsl_heap_current;
    uint64_t before = told_objects(part);
    alloc(100);
    os_fake.now_ms += ms;
    CHECK_EQ(tslab_scope_leave(&scope), 0);
    told += told_objects(part) != before;
  }
  return told;
}

// At most one in 64 scopes of a part is not told yet; of a thread that leaves few, none.
static void scopes_are_told_but_for_a_few(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  tsl_report_start();
  CHECK_EQ(tell_of(epoch, 64, 0), 64);
  for (unsigned scopes = 64 + 500; scopes < 8000; scopes += 500) {
    (void)tell_of(epoch, 500, 0);
    struct told told = told_of_epoch(tsl_epoch_slot(epoch));
    CHECK_GE(told.objects, scopes - scopes / 64);
  }
  CHECK_LE(tell_of(epoch, 500, 0), 5);
  CHECK_LE(tell_of(epoch, 300, 10), 100);
  CHECK_EQ(tell_of(epoch, 20, 10), 20);
  (void)tell_of(epoch, 2, 0);  // two at a time do not make a thread that leaves few a busy one
  CHECK_GE(tell_of(epoch, 10, 10), 7);
}

// The pace is the part's: an epoch that is entered once is told, however busy the thread is.
static void a_new_part_is_told(void) {
  open_homes();
  tsl_report_start();
  (void)tell_of(epochs_open(), 3000, 0);
  for (unsigned i = 0; i < 5; i++) CHECK_EQ(tell_of(epochs_open(), 1, 0), 1);
}

// In the middle of a scope.
static void a_tick_tells_of_the_part_that_the_thread_is_in(void) {
  open_homes();
  tsl_report_start();
  tslab_scope scope;
  tslab_epoch epoch = epochs_open();
  epochs_enter(&scope, epoch);
  alloc(100);
  check_told(epoch, 0, 0);
  os_fake.now_ms++;
  tsl_report_tick(mine->home);
  check_told(epoch, 1, takes(100));
  epochs_leave(&scope);
}

// Scopes of the default epoch, within another or not, are what its ticks tell.
static void scopes_of_the_default_epoch_do_not_matter(void) {
  open_homes();
  tsl_report_start();
  mine->leaves = 1;
  tslab_scope scope;
  epochs_enter(&scope, TSLAB_DEFAULT);
  epochs_leave(&scope);
  CHECK_EQ(mine->leaves, 0);
}

static void scopes_end_with_their_thread(void) {
  tslab_scope outer, inner;
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;  // the thread should have left them
  (void)enter_twice(&outer, &inner);
  tsl_report_heap(tsl_heap_current);
  const struct tsl_heaps_row *row = TSL_ROW(heaps, tsl_heap_current->number);
  CHECK_EQ(row->scopes, 2);
  tsl_scope_leave_all(mine->home);
  CHECK_EQ(row->scopes, 0);
}

// Its first cell may be the one that the thread's last part had, cut as far.
static void a_part_like_the_last_one_is_told(void) {
  open_homes();
  for (int i = 0; i < 2; i++) {
    tslab_epoch epoch = epochs_open();
    void *block = epochs_alloc(epoch, 100);
    check_told(epoch, 1, takes(100));
    epochs_free(block, 100);
    epochs_close(epoch, 0);
  }
}

static void scopes_are_told_when_they_are_left(void) {
  open_homes();
  tslab_scope scope;
  tslab_epoch epoch = epochs_open();
  epochs_enter(&scope, epoch);
  void *first = alloc(100), *second = alloc(200);
  tsl_fast_free(first);
  epochs_leave(&scope);
  check_told(epoch, 1, takes(200));
  epochs_enter(&scope, epoch);
  tsl_fast_free(second);
  epochs_leave(&scope);
  check_told(epoch, 0, 0);
}

static void gaps_are_nobodys(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  size_t bytes = takes_of(epochs_alloc(epoch, 16));
  epochs_pass_time();
  bytes += takes_of(tslab_epoch_aligned_alloc(epoch, 256, 16));
  epochs_pass_time();
  bytes += takes_of(tslab_epoch_aligned_alloc(epoch, 1024, 32));
  check_told(epoch, 3, bytes);
}

// Also of parts that stay as they are, and by the child's thread.
static void a_child_tells_of_all_heaps_anew(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  mine->home->thread = 1;
  struct tsl_part *part = tsl_part_at(mine->home->family);
  part->leave_pace = 64;
  tsl_report_after_fork();
  CHECK_EQ(part->leave_pace, 1);
  tsl_report_start();
  struct tslab_scope scope;
  epochs_enter(&scope, epoch);
  epochs_leave(&scope);
  check_told(epoch, 1, takes(100));
  tell();
  const struct tsl_heaps_row *row = TSL_ROW(heaps, mine->number);
  CHECK_EQ(row->thread, tsl_os_thread());
}

struct live {
  void *block;
  size_t bytes;
  unsigned epoch;  // EPOCHS: the default one
};

static struct live live[MOST_LIVE];
static unsigned live_count;
static uint64_t allocated;
static tslab_epoch epochs[EPOCHS];
static bool is_closed[EPOCHS];

static size_t random_size(uint64_t *seed) {
  unsigned kind = test_random_below(seed, 20);
  if (kind == 0) return 40000 + test_random_below(seed, 200000);
  return 1 + test_random_below(seed, kind < 4 ? 9000 : 400);
}

static void forget(unsigned i) { live[i] = live[--live_count]; }

static void allocate(uint64_t *seed) {
  if (live_count == MOST_LIVE) return;
  struct live *at = &live[live_count];
  *at = (struct live){NULL, random_size(seed), test_random_below(seed, EPOCHS + 2)};
  if (at->epoch > EPOCHS) at->epoch = EPOCHS;
  if (at->epoch != EPOCHS && is_closed[at->epoch]) return;
  at->block = at->epoch == EPOCHS ? tsl_fast_malloc(at->bytes)
                                  : tslab_epoch_malloc(epochs[at->epoch], at->bytes);
  CHECK(at->block != NULL);
  at->bytes = takes_of(at->block);
  live_count++;
  allocated++;
}

static void end_one(uint64_t *seed) {
  if (live_count == 0) return;
  unsigned i = test_random_below(seed, live_count);
  tsl_fast_free(live[i].block);
  forget(i);
}

static void change_epoch(uint64_t *seed) {
  unsigned i = test_random_below(seed, EPOCHS);
  if (!is_closed[i] && test_random_below(seed, 4) != 0) {
    CHECK_EQ(tslab_epoch_close(epochs[i]).error, 0);
    is_closed[i] = true;
    return;
  }
  int error = tslab_epoch_release(epochs[i]);
  CHECK(error == 0 || error == ESTALE);
  for (unsigned at = live_count; at-- > 0;) {
    if (live[at].epoch == i) forget(at);
  }
  epochs[i] = EPOCHS_OPEN(.first_cell_bytes = test_random_below(seed, 3) == 0 ? TSLAB_NO_CELLS : 0);
  is_closed[i] = false;
}

static void check_epochs(void) {
  for (unsigned i = 0; i < EPOCHS; i++) {
    uint64_t objects = 0, bytes = 0;
    for (unsigned at = 0; at < live_count; at++) {
      objects += live[at].epoch == i;
      bytes += live[at].epoch == i ? live[at].bytes : 0;
    }
    const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epochs[i]));
    if (row->id == epochs[i]) check_told(epochs[i], objects, bytes);
    if (row->id != epochs[i]) CHECK_EQ(objects, 0);
    if (row->id == epochs[i])
      CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(epochs[i]))->held_bytes);
  }
}

static void check_default(void) {
  uint32_t objects[TSL_CLASSES] = {0};
  for (unsigned at = 0; at < live_count; at++) {
    if (live[at].epoch == EPOCHS && live[at].bytes <= TSL_SMALL_LIMIT)
      objects[tsl_sizeclass_of(live[at].bytes)]++;
  }
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    check_context_set("class %d", (int)class);
    CHECK_EQ(told_of_class(class), objects[class]);
  }
}

static void what_is_told_is_true(void) {
  uint64_t seed = 5;
  open_homes();
  tsl_report_start();
  for (unsigned i = 0; i < EPOCHS; i++) epochs[i] = epochs_open();
  for (unsigned step = 0; step < STEPS; step++) {
    be(test_random_below(&seed, 3) == 0 ? other : mine);
    epochs_pass_time();
    unsigned kind = test_random_below(&seed, 100);
    if (kind < 50) allocate(&seed);
    if (kind >= 50 && kind < 98) end_one(&seed);
    if (kind >= 98) change_epoch(&seed);
    os_fake.now_ms += step % 8 == 0;
    if (step % CHECK_EVERY != 0) continue;
    tell();
    check_epochs();
    // What others freed waits with them: told from the frees on.
    check_default();
    os_fake.now_ms++;
    tsl_owner_act_for(mine->home);
    tsl_report_tick(mine->home);
    tsl_owner_act_for(NULL);
    CHECK_EQ(told_allocations(), allocated);
    state_check();
  }
}

// By a thread without a heap, so far.
static void frees_by_nobodys_threads_are_counted(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_bins_row *row = TSL_ROW(bins, 0);
  uint64_t before = row->sent[TSL_CLASS_OF_64];
  for (unsigned i = 0; i < 3; i++) tsl_report_homeless(TSL_CLASS_OF_64);
  CHECK_EQ(row->sent[TSL_CLASS_OF_64], before + 3);
}

// A fork that comes as the file is made leaves the child without one in the middle.
static void without_a_file_no_frees_are_told(void) {
  tsl_options.stats = 0;
  (void)tsl_fast_malloc(100);
  CHECK(!tsl_report_is_on());
  tsl_report_all_homeless();
}

int main(void) {
  RUN(without_a_file_no_frees_are_told);
  RUN(frees_by_nobodys_threads_are_counted);
  RUN(threads_are_told);
  RUN(frees_of_a_parts_slabs_by_others_are_told);
  RUN_UNLESS_SECURE(frees_of_a_parts_cells_by_others_are_told);
  RUN(scopes_are_told_when_they_are_left);
  RUN(scopes_are_told_when_they_are_left_and_when_their_epoch_ends);
  RUN_UNLESS_SECURE(frees_from_outside_are_told_and_open_no_scope);
  RUN(a_home_from_the_pool_is_its_new_threads);
  RUN(a_part_like_the_last_one_is_told);
  RUN_UNLESS_SECURE(scopes_are_told_but_for_a_few);
  RUN_UNLESS_SECURE(a_new_part_is_told);
  RUN_UNLESS_SECURE(a_tick_tells_of_the_part_that_the_thread_is_in);
  RUN(scopes_of_the_default_epoch_do_not_matter);
  RUN(scopes_end_with_their_thread);
  RUN(gaps_are_nobodys);
  RUN(a_child_tells_of_all_heaps_anew);
  RUN(what_is_told_is_true);
  return test_status();
}
