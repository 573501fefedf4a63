#include "epoch/place.h"

#include <errno.h>

#include "base/lock.h"
#include "base/options.h"
#include "ends.h"
#include "epoch/scope.h"
#include "epochs.h"
#include "heap/slabs.h"
#include "heap/store.h"
#include "heap/valid.h"
#include "memory/purge.h"
#include "os_fake.h"
#include "state/change.h"
#include "state/history.h"
#include "threads.h"
#include "upkeep/tick.h"

enum { BYTES = 100, BLOCKS = 64, MANY = 4000, OUTLIVING = 2000 };

static void *blocks[MANY];

static tslab_epoch open_as(enum tslab_place place) {
  tslab_epoch_options options = {.size = sizeof options, .place = place};
  tslab_epoch epoch = tslab_epoch_open("request", &options);
  CHECK_NE(epoch, TSLAB_NO_EPOCH);
  return epoch;
}

static bool shares(tslab_epoch epoch) { return epochs_stats(epoch).place != epoch; }

static void serve(tslab_epoch epoch) {
  epochs_alloc_many(blocks, epoch, BYTES, 10);
  epochs_free_many(blocks, BYTES, 10);
}

// As many as a label needs before the next ones share.
static void close_enough(void) {
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++) {
    tslab_epoch epoch = open_as(TSLAB_PLACE_AUTO);
    CHECK(!shares(epoch));
    serve(epoch);
    epochs_close(epoch, 0);
  }
}

static void labels_come_to_share(void) {
  close_enough();
  tslab_epoch first = open_as(TSLAB_PLACE_AUTO), second = open_as(TSLAB_PLACE_AUTO);
  tslab_epoch place = epochs_stats(first).place;
  CHECK(shares(first) && first != second);
  CHECK_EQ(epochs_stats(second).place, place);
  CHECK_EQ(epochs_stats(place).state, TSLAB_SHARED);
  CHECK(tsl_place_is_shared(place) && !tsl_place_is_shared(first));
  CHECK(!shares(open_as(TSLAB_PLACE_OWN)));
  CHECK(!shares(EPOCHS_OPEN(.place = TSLAB_PLACE_OWN)));
}

// An epoch that all its objects outlive, so many that most of its memory is theirs.
static void outlive(const tslab_epoch_options *options) {
  tslab_epoch epoch = tslab_epoch_open("request", options);
  CHECK(!shares(epoch));
  epochs_alloc_many(blocks, epoch, BYTES, OUTLIVING);
  epochs_close(epoch, OUTLIVING);
}

static void outlive_until_shared(const tslab_epoch_options *options) {
  unsigned count = 0;
  for (; !shares(open_as(TSLAB_PLACE_AUTO)); count++) {
    CHECK_LE(count + 1, TSL_HISTORY_ENOUGH);
    outlive(options);
    epochs_free_many(blocks, BYTES, OUTLIVING);
  }
  CHECK_GE(count, TSL_HISTORY_FEW);
}

static void survivors_that_are_freed_make_labels_share(void) { outlive_until_shared(NULL); }

static void survivors_in_slabs_do_so_too(void) {
  tslab_epoch_options slabs = {.size = sizeof slabs, .first_cell_bytes = TSLAB_NO_CELLS};
  outlive_until_shared(&slabs);
}

// They may be there for a release.
static void survivors_that_stay_do_not(void) {
  for (unsigned i = 0; i < 3 * TSL_HISTORY_ENOUGH; i++) outlive(NULL);
  CHECK_EQ(tslab_epoch_release(open_as(TSLAB_PLACE_AUTO)), 0);
}

// The pages of large blocks are theirs alone.
static void large_survivors_pin_nothing(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_AUTO);
  uint32_t label = tsl_epoch_at(tsl_epoch_slot(epoch))->label;
  void *block = epochs_alloc(epoch, 4 << 20);
  epochs_close(epoch, 1);
  CHECK_EQ(tsl_history_of(label).pinned_bytes, 0);
  CHECK_EQ(tsl_history_of(label).survivor_bytes, 4 << 20);
  epochs_free(block, 4 << 20);
}

static void what_needs_its_own_has_it(void) {
  close_enough();
  tslab_epoch parent = open_as(TSLAB_PLACE_AUTO);
  const tslab_epoch_options wants[] = {
      {.size = sizeof *wants, .parent = parent},
      {.size = sizeof *wants, .soft_limit_bytes = 1 << 20},
      {.size = sizeof *wants, .hard_limit_bytes = 1 << 20},
      {.size = sizeof *wants, .purge = TSLAB_PURGE_KEEP},
      {.size = sizeof *wants, .first_cell_bytes = TSLAB_NO_CELLS},
  };
  for (unsigned i = 0; i < sizeof wants / sizeof *wants; i++) {
    CHECK(!shares(tslab_epoch_open("request", &wants[i])));
    tslab_epoch_options both = wants[i];
    both.place = TSLAB_PLACE_SHARED;
    CHECK(tslab_epoch_open("request", &both) == TSLAB_NO_EPOCH && errno == EINVAL);
  }
  const tslab_epoch_options unknown = {.size = sizeof unknown, .place = TSLAB_PLACE_SHARED + 1};
  CHECK(tslab_epoch_open("request", &unknown) == TSLAB_NO_EPOCH && errno == EINVAL);
}

static void the_end_of_one_that_shares_purges_as_wanted(void) {
  close_enough();
  const tslab_epoch_options wanted = {.size = sizeof wanted, .purge = TSLAB_PURGE_NOW};
  tslab_free(tslab_malloc(4 << 20));
  size_t dirty = tsl_units_dirty();
  tslab_epoch first = tslab_epoch_open("request", &wanted), second = open_as(TSLAB_PLACE_AUTO);
  CHECK(shares(first) && shares(second));
  CHECK_GE(dirty, (4 << 20) / TSL_UNIT_BYTES);
  epochs_close(second, 0);
  CHECK_EQ(tsl_units_dirty(), dirty);
  epochs_close(first, 0);
  CHECK_EQ(tsl_units_dirty(), 0);
  CHECK_EQ(state_cached_units(), 0);
}

static const tslab_epoch_options purging_name = {
    .size = sizeof purging_name, .purge = TSLAB_PURGE_NOW, .place = TSLAB_PLACE_SHARED};

// Whichever name the record had before.
static void names_keep_no_purge(void) {
  tslab_epoch first = tslab_epoch_open("request", &purging_name);
  CHECK(shares(first));
  epochs_close(first, 0);
  tslab_free(tslab_malloc(4 << 20));
  tslab_epoch second = open_as(TSLAB_PLACE_SHARED);
  CHECK_EQ(tsl_epoch_slot(second), tsl_epoch_slot(first));
  epochs_close(second, 0);
  CHECK_GE(tsl_units_dirty(), (4 << 20) / TSL_UNIT_BYTES);
}

static void an_option_keeps_all_apart(void) {
  close_enough();
  tsl_options.places = TSL_PLACES_OWN;
  CHECK(!shares(open_as(TSLAB_PLACE_AUTO)));
  CHECK(shares(open_as(TSLAB_PLACE_SHARED)));
}

// The name is the epoch's, the memory its label's.
static void blocks_lie_in_the_shared_one(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED), other = open_as(TSLAB_PLACE_SHARED);
  tslab_epoch place = epochs_stats(epoch).place;
  tslab_scope scope, inner, back;
  epochs_enter(&scope, epoch);
  void *block = tslab_malloc(BYTES), *large = tslab_malloc(1 << 20);
  CHECK_EQ(tslab_epoch_of(block), place);
  CHECK_EQ(tslab_epoch_of(large), place);
  epochs_enter(&inner, other);
  epochs_enter(&back, TSLAB_DEFAULT);
  epochs_leave(&back);
  CHECK_EQ(tslab_epoch_current(), other);
  epochs_leave(&inner);
  CHECK_EQ(tslab_epoch_current(), epoch);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(epochs_stats(epoch).live_objects, 0);
  CHECK_EQ(epochs_stats(place).live_objects, 2);
  tslab_free(block);
  tslab_free(large);
}

static void who_is_inside_goes_on_when_it_ends(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
  CHECK_EQ(tslab_epoch_current(), epoch);
  tslab_free(tslab_malloc(BYTES));
  CHECK(tslab_epoch_malloc(epoch, BYTES) == NULL && errno == ESTALE);
  epochs_leave(&scope);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), ESTALE);
}

static void survivors_stay_valid(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_epoch place = epochs_stats(epoch).place;
  epochs_alloc_many(blocks, epoch, BYTES, BLOCKS);
  epochs_close(epoch, 0);
  CHECK_EQ(epochs_stats(place).live_objects, BLOCKS);
  epochs_free_many(blocks, BYTES, BLOCKS);
  CHECK_EQ(epochs_stats(place).live_objects, 0);
  epochs_check_all_free();
}

// It ends nothing that lives, says so, and is the last one of its label that shares.
static void a_release_ends_no_block(void) {
  close_enough();
  tslab_epoch epoch = open_as(TSLAB_PLACE_AUTO);
  CHECK(shares(epoch));
  epochs_alloc_many(blocks, epoch, BYTES, BLOCKS);
  CHECK_EQ(tslab_epoch_release(epoch), ENOTSUP);
  CHECK(epochs_is_over(epoch));
  epochs_free_many(blocks, BYTES, BLOCKS);
  tslab_epoch next = open_as(TSLAB_PLACE_AUTO);
  CHECK(!shares(next));
  epochs_alloc_many(blocks, next, BYTES, BLOCKS);
  CHECK_EQ(tslab_epoch_release(next), 0);
  epochs_check_all_free();
}

static void labels_that_release_never_share(void) {
  for (unsigned i = 0; i < 3 * TSL_HISTORY_ENOUGH; i++) {
    tslab_epoch epoch = open_as(TSLAB_PLACE_AUTO);
    CHECK(!shares(epoch));
    serve(epoch);
    epochs_alloc(epoch, BYTES);
    epochs_close(epoch, 1);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
}

// PL2.
static void the_shared_one_never_ends(void) {
  tslab_epoch place = epochs_stats(open_as(TSLAB_PLACE_SHARED)).place;
  CHECK_EQ(tslab_epoch_close(place).error, EPERM);
  CHECK_EQ(tslab_epoch_release(place), EPERM);
  tslab_free(epochs_alloc(place, BYTES));
}

static void limits_need_its_own(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED), own = open_as(TSLAB_PLACE_OWN);
  CHECK_EQ(tslab_epoch_set_limits(epoch, 0, 1 << 20), ENOTSUP);
  CHECK_EQ(tslab_epoch_set_limits(own, 0, 1 << 20), 0);
  CHECK_EQ(tslab_epoch_set_limits(epochs_stats(epoch).place, 0, 1 << 20), 0);
}

static void handles_know_their_objects(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_handle handle = tslab_handle_alloc(epoch, BYTES);
  CHECK(tslab_handle_get(handle) == handle.block && handle.block != NULL);
  epochs_close(epoch, 0);
  CHECK(tslab_handle_get(handle) == handle.block);
  CHECK(tslab_handle_free(handle) && !tslab_handle_free(handle));
  CHECK(tslab_handle_get(handle) == NULL);
}

static void reallocated_blocks_stay(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_epoch place = epochs_stats(epoch).place;
  void *block = tslab_realloc(epochs_alloc(epoch, BYTES), 50 * BYTES);
  CHECK_EQ(tslab_epoch_of(block), place);
  epochs_close(epoch, 0);
  block = tslab_realloc(block, 5000 * BYTES);
  CHECK_EQ(tslab_epoch_of(block), place);
  tslab_free(block);
}

static int never(void *block, size_t bytes, void *unused) {
  (void)block, (void)bytes, (void)unused;
  CHECK(false);
  return 1;
}

// Its threads look after it at any time.
static void nobody_walks_the_shared_one(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  void *block = epochs_alloc(epoch, BYTES);
  CHECK_EQ(tslab_epoch_blocks_each(epochs_stats(epoch).place, never, NULL), EPERM);
  CHECK_EQ(tslab_epoch_blocks_each(epoch, never, NULL), 0);
  tslab_free(block);
}

static tslab_epoch ended;
static void close_and_release(void) {
  CHECK_EQ(tslab_epoch_close(ended).error, EPERM);
  CHECK_EQ(tslab_epoch_release(ended), EPERM);
}

// ends_with checks that the thread borrows no heap.
static void late_calls_keep_no_heap(void) {
  ended = epochs_stats(open_as(TSLAB_PLACE_SHARED)).place;
  ends_with(close_and_release);
}

static void a_release_after_the_close_ends_no_block(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED), child = EPOCHS_OPEN(.parent = epoch);
  void *block = epochs_alloc(epoch, BYTES);
  epochs_close(epoch, 0);
  CHECK_EQ(tslab_epoch_release(epoch), ENOTSUP);
  CHECK(epochs_is_over(child) && epochs_is_over(epoch));
  epochs_free(block, BYTES);
}

// Cells whose blocks are freed outside go back at ticks. The secure build has slabs instead, and a
// quarantine that keeps some.
static void dead_cells_go_back(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_epoch place = epochs_stats(epoch).place;
  epochs_alloc_many(blocks, epoch, 4096, 200);
  size_t most = epochs_stats(place).held_bytes;
  epochs_free_many(blocks, 4096, 200);
  for (unsigned i = 0; i < 10; i++) tsl_home_tick(tsl_heap_current->home);
  CHECK_LE(200 * (size_t)4096, most);
  CHECK_LE(epochs_stats(place).held_bytes, TSL_SECURE ? most / 2 : (size_t)64 << 10);
}

static bool has_slabs(tslab_epoch epoch) {
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (unsigned i = 0; i < 10000; i++) tslab_free(tslab_malloc(BYTES));
  bool has = tsl_heap_has_store(tsl_heap_current);
  epochs_leave(&scope);
  return has;
}

static void *free_all(void *context) {
  (void)context;
  epochs_free_many(blocks, BYTES, MANY);
  return NULL;
}

static tslab_epoch open_purging(void) {
  tslab_epoch epoch = tslab_epoch_open("request", &purging_name);
  CHECK(shares(epoch));
  return epoch;
}

static void alloc_and_free_elsewhere(tslab_epoch epoch) {
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  threads_run_one(free_all, NULL);
  os_fake.purged_bytes = 0;
}

// The thread that ends it collects them.
static void what_others_freed_goes_back_at_the_end(void) {
  tslab_epoch epoch = open_purging();
  CHECK(has_slabs(epoch));
  alloc_and_free_elsewhere(epoch);
  epochs_close(epoch, 0);
  CHECK_GE(os_fake.purged_bytes, (size_t)MANY * BYTES / 2);
}

static void what_others_freed_goes_back_at_a_release(void) {
  tslab_epoch epoch = open_purging();
  CHECK(has_slabs(epoch));
  alloc_and_free_elsewhere(epoch);
  CHECK_EQ(tslab_epoch_release(epoch), ENOTSUP);
  CHECK_GE(os_fake.purged_bytes, (size_t)MANY * BYTES / 2);
}

// The thread keeps a few at hand.
static void cells_that_others_emptied_go_back_at_the_end(void) {
  tslab_epoch epoch = open_purging();
  alloc_and_free_elsewhere(epoch);
  epochs_close(epoch, 0);
  CHECK_GE(os_fake.purged_bytes, (size_t)MANY * BYTES / 4);
}

static tslab_epoch open_shared(unsigned number) {
  char label[8];
  snprintf(label, sizeof label, "l%u", number);
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  return tslab_epoch_open(label, &options);
}

// However many busy labels share, each goes on in slabs, and so does a long epoch.
static void shared_ones_take_no_place_of_others(void) {
  for (unsigned i = 0; i < 2 * TSL_MOST_STORES; i++) CHECK(has_slabs(open_shared(i)));
  CHECK(has_slabs(epochs_open()));
}

// So many objects of which 16 live at a time, a thousand of them in so long. Whether the next ones
// lie in cells.
static bool serve_slowly(tslab_epoch epoch, unsigned objects, uint64_t ms) {
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (unsigned i = 0; i < objects; i++) {
    if (i >= 16) tslab_free(blocks[i % 16]);
    blocks[i % 16] = tslab_malloc(BYTES);
    if (i % 1000 == 999) os_fake.now_ms += ms;
  }
  for (unsigned i = 0; i < 16; i++) tslab_free(blocks[i]);
  bool is_mixed = tsl_heap_current->cell_class;
  epochs_leave(&scope);
  return is_mixed;
}

// Each has slabs of its own: of labels that are not busy only the first ones of a thread do.
static void a_ninth_label_stays_in_cells_until_it_is_busy(void) {
  for (unsigned i = 0; i < TSL_MOST_STORES; i++) {
    tslab_epoch own = epochs_open();
    CHECK(has_slabs(own));
    epochs_close(own, 0);
  }
  for (unsigned i = 0; i < TSL_MOST_STORES; i++) CHECK(!serve_slowly(open_shared(i), 10000, 100));
  tslab_epoch ninth = open_shared(TSL_MOST_STORES);
  CHECK(serve_slowly(ninth, 10000, 9));
  os_fake.now_ms += 1000;
  CHECK(serve_slowly(ninth, 2000, 5));
  CHECK(!serve_slowly(ninth, 10000, 5));
}

static uint32_t pushed_ready(const struct tsl_heap *part) { return (uint32_t)part->ready; }

// By a thread that is outside: it is the thread's own all the same.
static void what_is_freed_from_outside_is_at_hand(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  CHECK(has_slabs(epoch));
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  struct tsl_heap *part = tsl_heap_current;
  for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = tslab_malloc(BYTES);
  epochs_leave(&scope);
  for (unsigned i = 0; i < BLOCKS; i++) tslab_free(blocks[i]);
  CHECK_EQ(pushed_ready(part), 0);
  CHECK_EQ(part->depth, 0);
  epochs_enter(&scope, open_as(TSLAB_PLACE_SHARED));
  CHECK(tslab_malloc(BYTES) == blocks[BLOCKS - 1]);
  tslab_free(blocks[BLOCKS - 1]);
  epochs_leave(&scope);
  CHECK(tsl_heap_valid(part));
}

static struct tsl_heap *fill_from(tslab_epoch epoch, void **first) {
  CHECK(has_slabs(epoch));
  epochs_alloc_many(first, epoch, BYTES, BLOCKS);
  return tsl_heap_at(tsl_entry_owner(tsl_map_lookup(first[0])));
}

// Each goes to its own label's, whichever the thread freed into last.
static void what_is_freed_from_outside_of_two_labels_is_apart(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  void **others = blocks + BLOCKS;
  const struct tsl_heap *part = fill_from(open_as(TSLAB_PLACE_SHARED), blocks);
  const struct tsl_heap *other = fill_from(tslab_epoch_open("query", &options), others);
  CHECK(part != other);
  for (unsigned i = 0; i < BLOCKS; i++) {
    tslab_free(blocks[i]);
    CHECK(part->bins[tsl_class_around(blocks[i])].head == blocks[i]);
    tslab_free(others[i]);
    CHECK(other->bins[tsl_class_around(others[i])].head == others[i]);
  }
  CHECK(tsl_heap_valid(part) && tsl_heap_valid(other));
}

static void *free_there(void *block) {
  tslab_free(block);
  return NULL;
}

// Another thread freed it: it must not be at hand as well.
static void what_others_freed_is_not(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_scope scope;
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  CHECK(has_slabs(epoch));
  void *block = epochs_alloc(epoch, BYTES);
  threads_run_one(free_there, block);
  tslab_free(block);
  epochs_enter(&scope, epoch);
  CHECK(tslab_malloc(BYTES) != block);
  epochs_leave(&scope);
}

static void *free_first_and_last(void *unused) {
  tslab_free(blocks[0]);
  tslab_free(blocks[MANY - 1]);
  return unused;
}

// Nor one that waits behind a slab which the owner has collected.
static void what_waits_behind_is_not(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  CHECK(has_slabs(epoch));
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  struct tsl_heap *part = tsl_heap_at(tsl_entry_owner(tsl_map_lookup(blocks[0])));
  threads_run_one(free_first_and_last, NULL);
  struct tsl_change change = tsl_change_begin(part->home);
  tsl_heap_look_at_ready(part, 1);
  tsl_change_end(change);
  CHECK_EQ(pushed_ready(part), 0);
  CHECK_NE(part->pending, 0);
  void *waiting = blocks[tsl_unit_of(blocks[0]) == part->pending ? 0 : MANY - 1];
  tslab_free(waiting);
  CHECK(part->bins[tsl_class_around(waiting)].head != waiting);
}

// Also from the outside of an epoch with memory of its own. Its close counts what survives.
static void what_is_freed_from_outside_of_its_own_epoch_is_too(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  struct tsl_heap *part = tsl_heap_current;
  for (unsigned i = 0; i < 3; i++) blocks[i] = tslab_malloc(BYTES);
  epochs_leave(&scope);
  tslab_free(blocks[0]);
  CHECK(part->bins[tsl_class_around(blocks[0])].head == blocks[0]);
  CHECK_EQ(pushed_ready(part), 0);
  CHECK_EQ(tsl_part_of(part)->frees, 0);
  tslab_free(blocks[1]);
  epochs_close(epoch, 1);
}

static unsigned helper_calls;  // while none is refused (helper.c)
static void count_call(size_t more_bytes) {
  (void)more_bytes;
  helper_calls += tsl_locks_held == 0;
}

// A thread may free from outside alone, and then sleep.
static void frees_from_outside_call_a_helper(void) {
  for (unsigned slabs = 0; slabs < 2; slabs++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = slabs != 0 ? TSLAB_NO_CELLS : 0);
    epochs_alloc_many(blocks, epoch, BYTES, BLOCKS);
    tsl_options.helper = TSL_HELPER_ALWAYS;
    tsl_purge_helper_missing = count_call;
    helper_calls = 0;
    for (unsigned i = 0; i < BLOCKS; i++) tslab_free(blocks[i]);
    CHECK_NE(helper_calls, 0);
  }
}

// Who was about to begin when the epoch ended is refused.
static void no_free_begins_in_an_epoch_that_ended(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  void *block = epochs_alloc(epoch, BYTES);
  struct tsl_part *part = tsl_part_at(tsl_entry_owner(tsl_map_lookup(block)));
  CHECK(tsl_scope_free_begin(part));
  tsl_scope_free_end(part);
  epochs_close(epoch, 1);
  CHECK(!tsl_scope_free_begin(part));
  CHECK_EQ(part->frees, 0);
  tslab_free(block);
}

static uint64_t refills_in(tslab_epoch epoch) {
  tslab_scope scope;
  uint64_t refills = 0;
  epochs_enter(&scope, epoch);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    refills += tsl_heap_current->store->tallies[class].refills;
  epochs_leave(&scope);
  return refills;
}

// A place that is large because much survives in it keeps what each request needs at hand.
static void requests_beside_many_survivors_stay_hot(void) {
  void *kept[MANY / 4];
  for (unsigned i = 0; i < MANY / 4; i++) kept[i] = epochs_alloc(open_as(TSLAB_PLACE_SHARED), 8192);
  uint64_t before = 0;
  for (unsigned i = 0; i < 200; i++) {
    if (i == 100) before = refills_in(open_as(TSLAB_PLACE_SHARED));
    tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    for (unsigned j = 0; j < 20; j++) blocks[j] = tslab_malloc(16 + 16 * j);
    for (unsigned j = 0; j < 20; j++) tslab_free(blocks[j]);
    epochs_leave(&scope);
    epochs_close(epoch, 0);
  }
  CHECK_LE(refills_in(open_as(TSLAB_PLACE_SHARED)), before + 20);
  for (unsigned i = 0; i < MANY / 4; i++) epochs_free(kept[i], 8192);
}

static void *serve_many(void *unused) {
  (void)unused;
  for (unsigned i = 0; i < 300; i++) {
    tslab_epoch epoch = open_as(TSLAB_PLACE_AUTO);
    tslab_free(epochs_alloc(epoch, BYTES));
    tslab_survivors left = tslab_epoch_close(epoch);
    CHECK(left.error == 0 && left.objects == 0);
  }
  return NULL;
}

// A thread finds its part again without a look at those of the others.
static void threads_find_their_parts(void) {
  tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  struct tsl_heap *mine = tsl_heap_current;
  epochs_leave(&scope);
  threads_run(serve_many, NULL);
  tsl_heap_current->home->own->parts[mine->epoch % TSL_HOME_PARTS] = 0;
  epochs_enter(&scope, open_as(TSLAB_PLACE_SHARED));
  CHECK(tsl_heap_current == mine);
  epochs_leave(&scope);
}

// What a burst took goes back while its epochs are closed, with nobody allocating.
static void what_many_at_once_took_goes_back(void) {
  tslab_epoch epochs[MANY / 10];
  for (unsigned i = 0; i < MANY; i++) {
    if (i % 10 == 0) epochs[i / 10] = open_as(TSLAB_PLACE_SHARED);
    blocks[i] = epochs_alloc(epochs[i / 10], 4096);
  }
  size_t most = epochs_stats(epochs_stats(epochs[0]).place).held_bytes;
  tslab_epoch place = epochs_stats(epochs[0]).place;
  for (unsigned i = 0; i < MANY; i++) {
    epochs_free(blocks[i], 4096);
    if (i % 10 == 9) epochs_close(epochs[i / 10], 0);
  }
  CHECK_LE(MANY * (size_t)4096, most);
  CHECK_LE(epochs_stats(place).held_bytes, most / 3);
}

// A close that can give nothing back looks, but not each one; several in a row all do.
static void closes_look_seldom_in_vain(void) {
  tslab_epoch first = open_as(TSLAB_PLACE_SHARED);
  epochs_alloc_many(blocks, first, 4096, MANY / 2);
  const struct tsl_part *part = tsl_part_at(tsl_heap_current->home->own->shared);
  tslab_epoch place = epochs_stats(first).place;
  size_t most = epochs_stats(place).held_bytes;
  tslab_scope scope;
  for (unsigned i = 0; i < MANY; i++) {
    tslab_epoch epoch = open_as(TSLAB_PLACE_SHARED);
    epochs_enter(&scope, epoch);
    epochs_leave(&scope);
    epochs_close(epoch, 0);
  }
  CHECK_EQ(part->rest_pace, 64);
  epochs_free_many(blocks, 4096, MANY / 2);
  for (unsigned i = 0; i < 8; i++) epochs_close(open_as(TSLAB_PLACE_SHARED), 0);
  CHECK_LE(epochs_stats(place).held_bytes, most / 2);
}

// Of threads that come at once, one makes the shared epoch.
static void threads_share_one_place(void) {
  threads_run(serve_many, NULL);
  tslab_epoch epoch = open_as(TSLAB_PLACE_AUTO);
  CHECK(shares(epoch));
  CHECK_EQ(epochs_stats(open_as(TSLAB_PLACE_SHARED)).place, epochs_stats(epoch).place);
  CHECK(tsl_heap_valid(tsl_heap_current));
}

int main(void) {
  RUN(labels_come_to_share);
  RUN(survivors_that_are_freed_make_labels_share);
  RUN(survivors_in_slabs_do_so_too);
  RUN(survivors_that_stay_do_not);
  RUN(large_survivors_pin_nothing);
  RUN(what_needs_its_own_has_it);
  RUN(the_end_of_one_that_shares_purges_as_wanted);
  RUN(what_others_freed_goes_back_at_the_end);
  RUN(what_others_freed_goes_back_at_a_release);
  RUN(cells_that_others_emptied_go_back_at_the_end);
  RUN(names_keep_no_purge);
  RUN(an_option_keeps_all_apart);
  RUN(blocks_lie_in_the_shared_one);
  RUN(who_is_inside_goes_on_when_it_ends);
  RUN(survivors_stay_valid);
  RUN(a_release_ends_no_block);
  RUN(labels_that_release_never_share);
  RUN(the_shared_one_never_ends);
  RUN(limits_need_its_own);
  RUN(handles_know_their_objects);
  RUN(reallocated_blocks_stay);
  RUN_UNLESS_SECURE(requests_beside_many_survivors_stay_hot);
  RUN(nobody_walks_the_shared_one);
  RUN(late_calls_keep_no_heap);
  RUN(a_release_after_the_close_ends_no_block);
  RUN(dead_cells_go_back);
  RUN(shared_ones_take_no_place_of_others);
  RUN_UNLESS_SECURE(a_ninth_label_stays_in_cells_until_it_is_busy);
  RUN_UNLESS_SECURE(what_is_freed_from_outside_is_at_hand);
  RUN_UNLESS_SECURE(what_is_freed_from_outside_of_two_labels_is_apart);
  RUN_UNLESS_SECURE(what_others_freed_is_not);
  RUN_UNLESS_SECURE(what_waits_behind_is_not);
  RUN_UNLESS_SECURE(what_is_freed_from_outside_of_its_own_epoch_is_too);
  RUN(no_free_begins_in_an_epoch_that_ended);
  RUN_UNLESS_SECURE(frees_from_outside_call_a_helper);
  RUN(threads_find_their_parts);
  RUN(what_many_at_once_took_goes_back);
  RUN(closes_look_seldom_in_vain);
  RUN(threads_share_one_place);
  return test_status();
}
