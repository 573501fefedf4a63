#include "epoch/report.h"

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "epochs.h"
#include "homes.h"
#include "memory/purge.h"
#include "memory/units.h"
#include "takes.h"
#include "told.h"

enum { MOST_LIVE = 600, EPOCHS = 6, STEPS = 6000, CHECK_EVERY = 50 };

static struct tsl_heap *mine, *other;

static void open_homes(void) { homes_open((size_t)1 << 28, &mine, &other); }

static void *alloc(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  return block;
}

static void alloc_many(size_t bytes, unsigned count) {
  for (unsigned i = 0; i < count; i++) alloc(bytes);
}

static void be(struct tsl_heap *home) { tsl_heap_current = home; }

static void tell(void) {
  tsl_report_heap(mine);
  tsl_report_heap(other);
}

static void nothing_is_told_before_there_is_a_file(void) {
  open_homes();
  alloc(100);
  tell();
  CHECK(!tsl_report_is_on());
  CHECK(os_fake.shared == NULL);
}

static void the_first_epoch_with_memory_makes_it(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  CHECK(!tsl_report_is_on());
  epochs_alloc(epoch, 100);
  CHECK(tsl_report_is_on());
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->id, epoch);
  CHECK_EQ(row->state, TSLAB_OPEN);
  CHECK_EQ(row->held_bytes, TSL_SECURE ? 65536 : 4096);
  const struct tsl_labels_row *label = TSL_ROW(labels, row->label);
  CHECK(label != NULL && strcmp(label->text, "test") == 0);
  check_told(epoch, 1, takes(100));
}

static void age_makes_it(void) {
  open_homes();
  os_fake.now_ms = 1000;
  tsl_report_tick(mine);
  os_fake.now_ms += tsl_option(stats_delay_ms) - 1;
  tsl_report_tick(mine);
  CHECK(!tsl_report_is_on());
  os_fake.now_ms++;
  tsl_report_tick(mine);
  CHECK(tsl_report_is_on());
}

static void an_option_keeps_it_away(void) {
  open_homes();
  tsl_options.stats = 0;
  tsl_options.stats_delay_ms = 0;
  epochs_alloc(epochs_open(), 100);
  tsl_report_tick(mine);
  CHECK(!tsl_report_is_on());
  CHECK_EQ(os_fake.calls[OS_FAKE_SHARE], 0);
}

static void a_refusal_is_final_and_harmless(void) {
  open_homes();
  os_fake_fail_next(OS_FAKE_SHARE);
  for (int i = 0; i < 3; i++) epochs_alloc(epochs_open(), 100);
  CHECK(!tsl_report_is_on());
  CHECK_EQ(os_fake.calls[OS_FAKE_SHARE], 1);
}

// Without rows for heaps nobody reports; they are asked for again.
static void rows_that_come_late_are_taken(void) {
  open_homes();
  os_fake.now_ms = 1;
  tslab_epoch epoch = epochs_open();
  os_fake.failures[OS_FAKE_SHARE_MORE].from = 2;  // there is a file, without rows
  tsl_report_start();
  CHECK(!tsl_report_is_on());
  os_fake_recover();
  os_fake.now_ms += 1000;
  epochs_alloc(epoch, 100);
  CHECK(tsl_report_is_on());
  check_told(epoch, 1, takes(100));
}

// What lived before the file is in it once its thread comes by.
static void what_was_there_is_told(void) {
  open_homes();
  alloc_many(64, 100);
  be(other);
  alloc_many(64, 50);
  tsl_report_start();
  tell();
  CHECK_EQ(told_of_class(takes_class(64)), 150);
  const struct tsl_epochs_row *row = TSL_ROW(epochs, 0);
  CHECK_EQ(row->id, 0);
}

static void epochs_that_hold_memory_are_told(void) {
  open_homes();
  tsl_options.stats = 0;
  tslab_epoch first = epochs_open(), last = epochs_open();
  epochs_alloc(first, 100);
  epochs_alloc(last, 5000);
  tsl_options.stats = 1;
  tsl_report_start();
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(first));
  CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(first))->held_bytes);
  row = TSL_ROW(epochs, tsl_epoch_slot(last));
  CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(last))->held_bytes);
}

static void classes_are_told(void) {
  open_homes();
  tsl_report_start();
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    const struct tsl_classes_row *row = TSL_ROW(classes, class);
    CHECK_EQ(row->bytes, tsl_sizeclasses[class].bytes);
    CHECK_EQ(row->slab_bytes, tsl_sizeclasses[class].slab_bytes);
    CHECK_EQ(row->capacity, tsl_sizeclasses[class].capacity);
  }
}

static void the_process_is_told(void) {
  open_homes();
  tsl_report_start();
  os_fake.now_ms = 5000;
  tsl_fast_free(tsl_malloc_large(200000, 1, NULL));
  tsl_report_tick(mine);
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_EQ(row->open_bytes, tsl_units_open() << TSL_UNIT_LOG2);
  CHECK_EQ(row->free_bytes, tsl_units_free() << TSL_UNIT_LOG2);
  tsl_purge_all(0);
  os_fake.now_ms++;
  tsl_report_tick(mine);
  CHECK_GE(row->purges, 1);
  CHECK_EQ(row->purged_bytes, TSL_SECURE ? 262144 + TSL_UNIT_BYTES : 262144);
  CHECK_EQ(row->dirty_bytes, 0);
}

static void large_blocks_are_told_at_once(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  void *block = tsl_malloc_large(200000, 1, NULL);
  CHECK_EQ(row->large_objects, 1);
  CHECK_EQ(row->large_bytes, 262144);
  block = tslab_realloc(block, 100000);
  CHECK(block != NULL);
  CHECK_EQ(row->large_bytes, 131072);
  tsl_fast_free(block);
  CHECK_EQ(row->large_objects, 0);
  CHECK_EQ(row->large_bytes, 0);
  CHECK_EQ(row->large_allocations, 1);
}

// The first epoch makes the file before it has memory, and may be the last to pass by.
static void a_process_that_waits_tells_what_it_has(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  CHECK(tsl_fast_malloc(100) != NULL);
  epochs_leave(&scope);
  const struct tsl_process_row *row = TSL_ROW(process, 0);
  CHECK_GE(row->open_bytes, 1);
  CHECK_EQ(row->open_bytes, tsl_units_open() << TSL_UNIT_LOG2);
}

static void refusals_are_counted(void) {
  open_homes();
  tslab_epoch epoch = EPOCHS_OPEN(.hard_limit_bytes = 4096, .first_cell_bytes = TSLAB_NO_CELLS);
  CHECK(tslab_epoch_malloc(epoch, 100) == NULL);
  CHECK_EQ(tsl_counts.limits_refused, 1);
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_fast_malloc((size_t)1 << 27) == NULL);
  CHECK_GE(tsl_counts.memory_refused, 1);
}

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

static void threads_are_told(void) {
  open_homes();
  tsl_report_start();
  const struct tsl_heaps_row *row = TSL_ROW(heaps, mine->number);
  tsl_report_heap(mine);
  CHECK_EQ(row->thread, 4712);
  CHECK_EQ(row->state, 1);
  CHECK_EQ(row->home, mine->number);
  tsl_fast_free(alloc(64));
  tsl_heap_rest_all(mine);
  CHECK_GE(mine->unit_count, 1);
  tsl_report_heap(mine);
  CHECK_EQ(row->cached_units, mine->unit_count);
  be(&tsl_heap_empty);
  tsl_heap_pool(mine);
  CHECK_EQ(row->thread, 0);
  CHECK_EQ(row->state, 2);
  CHECK_EQ(row->cached_units, 0);
}

// It says so at its first slow path.
static void a_home_from_the_pool_is_its_new_threads(void) {
  open_homes();
  tsl_report_start();
  be(&tsl_heap_empty);
  tsl_heap_pool(mine);
  be(tsl_heap_take());
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

// Entering and leaving an epoch costs no more than that.
static void a_scope_in_which_nothing_happens_is_not_told(void) {
  open_homes();
  tslab_scope scope;
  epochs_enter(&scope, epochs_open());
  CHECK(!tsl_report_is_due(tsl_heap_current));
  alloc(100);
  CHECK(tsl_report_is_due(tsl_heap_current));
  epochs_leave(&scope);
}

static void nor_is_one_behind_a_scope_that_freed(void) {
  open_homes();
  tslab_scope scope;
  tslab_epoch epoch = epochs_open();
  epochs_enter(&scope, epoch);
  void *block = alloc(100);
  alloc(100);
  tsl_fast_free(block);
  epochs_leave(&scope);
  epochs_enter(&scope, epoch);
  CHECK(!tsl_report_is_due(tsl_heap_current));
  epochs_leave(&scope);
}

static void scopes_end_with_their_thread(void) {
  tslab_scope outer, inner;
  (void)enter_twice(&outer, &inner);
  tsl_report_heap(tsl_heap_current);
  const struct tsl_heaps_row *row = TSL_ROW(heaps, tsl_heap_current->number);
  CHECK_EQ(row->scopes, 2);
  tsl_scope_leave_all(mine);
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
  bytes += takes_of(tslab_epoch_aligned_alloc(epoch, 256, 16));
  bytes += takes_of(tslab_epoch_aligned_alloc(epoch, 1024, 32));
  check_told(epoch, 3, bytes);
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

static void a_child_of_fork_tells_of_itself(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  tsl_report_after_fork();
  CHECK(!tsl_report_is_on());
  epochs_alloc(epoch, 5000);
  CHECK(tsl_report_is_on());
  const struct tsl_epochs_row *row = TSL_ROW(epochs, tsl_epoch_slot(epoch));
  CHECK_EQ(row->id, epoch);
  CHECK_EQ(row->held_bytes, tsl_epoch_at(tsl_epoch_slot(epoch))->held_bytes);
}

// Also of parts that stay as they are, and by the child's thread.
static void a_child_tells_of_all_heaps_anew(void) {
  open_homes();
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, 100);
  mine->thread = 1;
  tsl_report_after_fork();
  tsl_report_start();
  struct tslab_scope scope;
  epochs_enter(&scope, epoch);
  epochs_leave(&scope);
  check_told(epoch, 1, takes(100));
  tell();
  const struct tsl_heaps_row *row = TSL_ROW(heaps, mine->number);
  CHECK_EQ(row->thread, tsl_os_thread());
}

// ---- Random operations of two threads, and what a reader makes of them.

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
    tsl_report_tick(mine);
    CHECK_EQ(told_allocations(), allocated);
    state_check();
  }
}

int main(void) {
  RUN(nothing_is_told_before_there_is_a_file);
  RUN(the_first_epoch_with_memory_makes_it);
  RUN(age_makes_it);
  RUN(an_option_keeps_it_away);
  RUN(a_refusal_is_final_and_harmless);
  RUN(rows_that_come_late_are_taken);
  RUN(what_was_there_is_told);
  RUN(epochs_that_hold_memory_are_told);
  RUN(classes_are_told);
  RUN(the_process_is_told);
  RUN(large_blocks_are_told_at_once);
  RUN(a_process_that_waits_tells_what_it_has);
  RUN(refusals_are_counted);
  RUN(survivors_in_cells);
  RUN(survivors_in_slabs);
  RUN(released_survivors_leave_no_trace);
  RUN(parents_hold_what_children_hold);
  RUN(threads_are_told);
  RUN(scopes_are_told_when_they_are_left);
  RUN(scopes_are_told_when_they_are_left_and_when_their_epoch_ends);
  RUN(a_home_from_the_pool_is_its_new_threads);
  RUN(a_part_like_the_last_one_is_told);
  RUN(a_scope_in_which_nothing_happens_is_not_told);
  RUN_UNLESS_SECURE(nor_is_one_behind_a_scope_that_freed);
  RUN(scopes_end_with_their_thread);
  RUN(gaps_are_nobodys);
  RUN(large_blocks_are_told);
  RUN(a_child_of_fork_tells_of_itself);
  RUN(a_child_tells_of_all_heaps_anew);
  RUN(what_is_told_is_true);
  return test_status();
}
