#include "upkeep/rounds.h"

#include "alloc/malloc.h"
#include "base/options.h"
#include "heap/remote.h"
#include "heap/rest.h"
#include "heap/warm.h"
#include "memory/purge.h"
#include "os_fake.h"
#include "state.h"
#include "state/bin.h"
#include "state/change.h"
#include "tended.h"
#include "tslab.h"
#include "upkeep/pool.h"

enum { CLASS_BYTES = 512, SLAB_BLOCKS = 128, SLABS = 300, BLOCKS = SLABS * SLAB_BLOCKS };
enum { LEAST_AGAIN = 16 };  // slabs
enum { DELAY_MS = TENDED_DELAY_MS, DEAD_BYTES = TSL_UNIT_BYTES - OS_FAKE_LEAST_PAGE_BYTES };

static struct tsl_home *sleeper, *other;
static unsigned char *blocks[BLOCKS];

static void allocate(void) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = tsl_fast_malloc(CLASS_BYTES);
    memset(blocks[i], 0x5a, CLASS_BYTES);
  }
}

// A home whose thread does nothing from now on.
static void fall_asleep(void) {
  tended_begin();
  allocate();
  sleeper = tsl_heap_current->home;
  other = tsl_home_take();
}

// A part without slabs, which comes first on the home's list.
static void join_without_slabs(const tslab_epoch_options *shared) {
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, tslab_epoch_open("nothing", shared)), 0);
  CHECK(!tsl_heap_has_store(tsl_heap_current));
  CHECK_EQ(tsl_heap_current->number, tsl_heap_current->home->own->shared);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
}

// The same of a thread whose blocks lie in one of three shared epochs.
static struct tsl_heap *fall_asleep_sharing(void) {
  const tslab_epoch_options shared = {.size = sizeof shared, .place = TSLAB_PLACE_SHARED};
  tslab_scope scope, inner;
  tended_begin();
  CHECK_EQ(tslab_scope_enter(&scope, tslab_epoch_open("batch", &shared)), 0);
  tsl_heap_current->cell_class = false;
  for (unsigned i = 0; i < SLAB_BLOCKS / 2; i++) CHECK(tsl_fast_malloc(CLASS_BYTES) != NULL);
  CHECK_EQ(tslab_scope_enter(&inner, tslab_epoch_open("request", &shared)), 0);
  struct tsl_heap *part = tsl_heap_current;
  part->cell_class = false;
  allocate();
  CHECK_EQ(tslab_scope_leave(&inner), 0);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  join_without_slabs(&shared);
  sleeper = tsl_heap_current->home;
  other = tsl_home_take();
  return part;
}

static void free_all_but_firsts(void) {
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % SLAB_BLOCKS != 0) tsl_fast_free(blocks[i]);
}

static void free_inside(struct tsl_heap *part) {
  tsl_heap_current = part;
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  tsl_heap_current = &sleeper->heap;
}

static void help(unsigned ms) {
  tsl_heap_current = &tsl_home_empty.heap;
  for (unsigned i = 0; i < ms; i++) {
    tsl_rounds_step();
    os_fake.now_ms++;
  }
  tsl_heap_current = &sleeper->heap;
}

static void check_kept(void) {
  for (unsigned i = 0; i < BLOCKS; i += SLAB_BLOCKS)
    for (unsigned b = 0; b < CLASS_BYTES; b++) CHECK_EQ(blocks[i][b], 0x5a);
  state_check();
}

// After the delay, and not before.
static void check_pages_go_back(void) {
  CHECK(tsl_rounds_are_missing());
  help(DELAY_MS - 2);
  CHECK_EQ(os_fake.purged_bytes, 0);
  CHECK(tsl_rounds_wait() && !tsl_rounds_are_missing());
  help(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
  CHECK(!tsl_rounds_wait() && !tsl_rounds_step());
  check_kept();
}

static void pages_of_a_sleeper_go_back(void) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  check_pages_go_back();
}

// The owner may be waiting: the helper, which asks for the home before each turn, lets it go after
// eight calls at most, where a slab needs one.
static void a_turn_is_short(void) {
  enum { MOST_CALLS = 8 };
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  for (unsigned ms = 0; ms < 4 * DELAY_MS; ms++) {
    uint64_t calls = os_fake.calls[OS_FAKE_PURGE], turns = os_fake.calls[OS_FAKE_BARRIER];
    help(1);
    calls = os_fake.calls[OS_FAKE_PURGE] - calls;
    turns = os_fake.calls[OS_FAKE_BARRIER] - turns;
    CHECK_LE(calls, turns * MOST_CALLS);
  }
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
}

// What another thread freed waits for the owner; its pages do not.
static void pages_of_remote_frees_go_back(void) {
  fall_asleep();
  tsl_heap_current = &other->heap;
  free_all_but_firsts();
  tsl_remote_send_all(other);
  help(4 * DELAY_MS);
  CHECK_GE(os_fake.purged_bytes, (SLABS - 1) * DEAD_BYTES);
  check_kept();
}

// A thread that sleeps while an epoch of its own is open, in which most objects ended.
static struct tsl_heap *fall_asleep_in_own(const tslab_epoch_options *options, tslab_epoch *epoch) {
  tslab_scope scope;
  tended_begin();
  *epoch = tslab_epoch_open("tenant", options);
  CHECK_EQ(tslab_scope_enter(&scope, *epoch), 0);
  struct tsl_heap *part = tsl_heap_current;
  part->cell_class = false;
  allocate();
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  sleeper = tsl_heap_current->home;
  other = tsl_home_take();
  return part;
}

static void pages_of_own_epochs_go_back(void) {
  tslab_epoch epoch;
  free_inside(fall_asleep_in_own(NULL, &epoch));
  check_pages_go_back();
}

static void pages_of_remote_frees_in_own_epochs_go_back(void) {
  tslab_epoch epoch;
  fall_asleep_in_own(NULL, &epoch);
  tsl_heap_current = &other->heap;
  free_all_but_firsts();
  help(4 * DELAY_MS);
  CHECK_GE(os_fake.purged_bytes, (SLABS - 1) * DEAD_BYTES);
  check_kept();
}

// Of many small epochs each has a few cells.
static void older_cells_of_open_epochs_go_back(void) {
  enum { EPOCHS = 40, CELL = 64 << 10, BYTES = 64, EACH = 2 * CELL / BYTES };
  tslab_epoch_options options = {.size = sizeof options, .first_cell_bytes = CELL};
  tended_begin();
  for (unsigned i = 0; i < EPOCHS; i++) {
    tslab_scope scope;
    CHECK_EQ(tslab_scope_enter(&scope, tslab_epoch_open("small", &options)), 0);
    for (unsigned b = 0; b < EACH + 1; b++) {
      blocks[b] = tsl_fast_malloc(BYTES);
      memset(blocks[b], 0x5a, BYTES);
    }
    for (unsigned b = 0; b < EACH; b++)
      if (b % (CELL / BYTES) != 0) tsl_fast_free(blocks[b]);
    CHECK_EQ(tslab_scope_leave(&scope), 0);
  }
  sleeper = tsl_heap_current->home;
  help(DELAY_MS - 2);
  CHECK_EQ(os_fake.purged_bytes, 0);
  help(3 * DELAY_MS);
  size_t page_bytes = os_fake_page_bytes();
  CHECK_EQ(os_fake.purged_bytes, EPOCHS * 2 * (CELL - tsl_round_up(BYTES, page_bytes)));
  CHECK(!tsl_rounds_wait() && !tsl_rounds_step());
  for (unsigned b = 0; b < EACH; b += CELL / BYTES) CHECK_EQ(blocks[b][BYTES - 1], 0x5a);
  state_check();
}

static void an_epoch_that_keeps_its_pages_is_passed_over(void) {
  const tslab_epoch_options keep = {.size = sizeof keep, .purge = TSLAB_PURGE_KEEP};
  tslab_epoch epoch;
  free_inside(fall_asleep_in_own(&keep, &epoch));
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
}

// C5
static void a_part_that_is_shut_is_passed_over(void) {
  tslab_epoch epoch;
  struct tsl_heap *part = fall_asleep_in_own(NULL, &epoch);
  free_inside(part);
  tsl_heap_current = &other->heap;
  tsl_change_shut(tsl_part_of(part));
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  tsl_heap_current = &other->heap;
  tsl_change_reopen(tsl_part_of(part));
  tsl_store_relaxed(&sleeper->loosened, 1);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
  check_kept();
}

// In the middle of a round, too: what is left of its slabs is remains (remains.h).
static void a_part_may_be_sealed_between_two_turns(void) {
  tslab_epoch epoch;
  struct tsl_heap *part = fall_asleep_in_own(NULL, &epoch);
  free_inside(part);
  help(1);
  CHECK(part->store->tender.next != 0);
  tsl_heap_current = &other->heap;
  CHECK_EQ(tslab_epoch_close(epoch).objects, SLABS);
  CHECK(!tsl_heap_has_store(part) && tsl_part_of(part)->shut == 0);
  size_t before = os_fake.purged_bytes;
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, before);
  check_kept();
}

// A slab to which others freed before tells its owner of no more, but the bytes do.
static void a_second_wave_of_remote_frees_goes_back(void) {
  fall_asleep();
  tsl_options.helper = TSL_HELPER_AUTO;
  tsl_heap_current = &other->heap;
  for (unsigned i = 1; i < BLOCKS; i += SLAB_BLOCKS) tsl_fast_free(blocks[i]);
  tsl_remote_send_all(other);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  tsl_heap_current = &other->heap;
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % SLAB_BLOCKS > 1) tsl_fast_free(blocks[i]);
  tsl_remote_send_all(other);
  CHECK(tsl_purge_returnable_bytes() - tsl_purge_idle_bytes() != 0);
  help(4 * DELAY_MS);
  CHECK_GE(os_fake.purged_bytes, (SLABS - 1) * DEAD_BYTES);
  CHECK_EQ(tsl_purge_returnable_bytes() - tsl_purge_idle_bytes(), 0);
  check_kept();
}

static void pages_of_shared_epochs_go_back(void) {
  struct tsl_heap *part = fall_asleep_sharing();
  CHECK_EQ(part->slab_count, SLABS);
  free_inside(part);
  check_pages_go_back();
}

// Only the part's stack of slabs tells of them.
static void pages_of_remote_frees_in_shared_epochs_go_back(void) {
  fall_asleep_sharing();
  help(4 * DELAY_MS);
  tsl_heap_current = &other->heap;
  free_all_but_firsts();
  tsl_remote_send_all(other);
  CHECK(!tsl_rounds_are_missing());
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
  check_kept();
}

static void a_torn_part_is_left_alone(void) {
  struct tsl_heap *part = fall_asleep_sharing();
  free_inside(part);
  part->torn = TSL_HEAP_PERHAPS_TORN;
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
}

// Everything is free but the first blocks of the slabs, goes back, and so many slabs are filled
// again.
static void take_again(unsigned slabs) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  help(12 * DELAY_MS);  // those that went back count little by then
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
  for (unsigned i = 0; i < slabs * SLAB_BLOCKS; i++) {
    if (i % SLAB_BLOCKS == 0) continue;
    blocks[i] = tsl_fast_malloc(CLASS_BYTES);
    memset(blocks[i], 0x5a, CLASS_BYTES);
  }
  CHECK_EQ(tsl_region.last_heap, 2);
  for (unsigned i = 0; i < slabs * SLAB_BLOCKS; i++) CHECK_EQ(blocks[i][CLASS_BYTES - 1], 0x5a);
  help(DELAY_MS + 1);
  for (unsigned i = 0; i < slabs * SLAB_BLOCKS; i++)
    if (i % SLAB_BLOCKS != 0) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(sleeper);
}

// After four delays.
static void what_was_taken_again_is_due_again(void) {
  take_again(SLABS);
  help(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
  help(3 * DELAY_MS);
  CHECK_GE(os_fake.purged_bytes, 2 * (SLABS - 1) * DEAD_BYTES);
}

static void few_slabs_taken_again_do_not_wait(void) {
  take_again(LEAST_AGAIN - 1);
  help(3 * DELAY_MS);
  CHECK_GE(os_fake.purged_bytes, (size_t)(SLABS + LEAST_AGAIN / 2) * DEAD_BYTES);
}

static void sixteen_slabs_taken_again_wait(void) {
  take_again(LEAST_AGAIN);
  help(3 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
}

static void dense_slabs_stay(void) {
  fall_asleep();
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % 3 != 0) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(sleeper);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
}

// The slab at which a round stopped is closed before the round goes on.
static void a_round_goes_on_behind_a_closed_slab(void) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  help(1);
  CHECK(sleeper->heap.store->tender.next != 0);
  for (unsigned i = 0; i < BLOCKS; i += SLAB_BLOCKS) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(sleeper);
  CHECK_EQ(sleeper->heap.slabs, 0);
  CHECK_EQ(sleeper->heap.store->tender.next, 0);
  help(4 * DELAY_MS);
  state_check();
}

static void an_owner_in_a_change_is_left_alone(void) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  struct tsl_change change = tsl_change_begin(sleeper);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  tsl_change_end(change);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
}

static void free_all(void) {
  for (unsigned i = 0; i < BLOCKS; i++) tsl_fast_free(blocks[i]);
}

// RO2
static void units_of_a_sleeper_go_back(void) {
  fall_asleep();
  free_all();
  CHECK(sleeper->unit_count != 0);
  help(2 * DELAY_MS + 4);
  CHECK_EQ(sleeper->unit_count, 0);
  CHECK_EQ(sleeper->unit_low, 0);
  uint32_t rounds = sleeper->rounds;
  help(10 * DELAY_MS);
  CHECK_LE(sleeper->rounds, rounds + 1);
  state_check();
}

// RO2. Its slabs are more than one turn looks at.
static void units_of_a_thread_that_opens_slabs_stay(void) {
  enum { OTHER_BYTES = 1024, OTHERS = 1024 };
  void *others[OTHERS];
  fall_asleep();
  for (unsigned i = 0; i < OTHERS; i++) others[i] = tsl_fast_malloc(OTHER_BYTES);
  for (unsigned i = 0; i < OTHERS; i++) tsl_fast_free(others[i]);
  free_all_but_firsts();
  CHECK_GE(sleeper->heap.slab_count, SLABS);
  uint32_t units = sleeper->unit_count;
  for (unsigned ms = 0; ms < 10 * DELAY_MS; ms++) {
    sleeper->opened++;
    help(1);
  }
  CHECK_GE(sleeper->rounds, 2);
  CHECK(units != 0);
  CHECK_EQ(sleeper->unit_count, units);
}

// RO2
static void what_an_ended_thread_kept_hot_goes_back(void) {
  unsigned class = tsl_sizeclass_of(CLASS_BYTES);
  fall_asleep();
  free_all();
  CHECK_EQ(tsl_bin_length(&sleeper->heap, class), tsl_bin_limit(&sleeper->heap, class));
  help(10 * DELAY_MS);
  CHECK_EQ(tsl_bin_length(&sleeper->heap, class), tsl_bin_limit(&sleeper->heap, class));
  tsl_home_pool(sleeper);
  help(4 * DELAY_MS);
  CHECK_EQ(tsl_bin_length(&sleeper->heap, class), 0);
  CHECK_EQ(sleeper->heap.slabs, 0);
  CHECK_EQ(tsl_home_take()->heap.number, sleeper->heap.number);
  state_check();
}

// The home's own slabs had their turn, and have changed; what that told the round is not lost.
static void a_round_that_is_refused_in_its_middle_begins_anew(void) {
  void *own[SLAB_BLOCKS];
  fall_asleep_sharing();
  for (unsigned i = 0; i < SLAB_BLOCKS; i++) own[i] = tsl_fast_malloc(CLASS_BYTES);
  tsl_store_relaxed(&sleeper->loosened, 1);
  help(4 * DELAY_MS);
  CHECK_EQ(sleeper->look_ms, 0);
  uint32_t rounds = sleeper->rounds;
  for (unsigned i = 0; i < SLAB_BLOCKS; i += 4) tsl_fast_free(own[i]);
  tsl_home_rest_all(sleeper);
  tsl_store_relaxed(&sleeper->loosened, 1);
  help(1);
  CHECK_EQ(sleeper->rounds, rounds);
  struct tsl_change change = tsl_change_begin(sleeper);
  help(1);
  tsl_change_end(change);
  help(1);
  CHECK_EQ(sleeper->rounds, rounds);
  help(8);
  CHECK_EQ(sleeper->rounds, rounds + 1);
  CHECK(sleeper->look_ms != 0);
}

// Each attempt interrupts the threads that run: it is made again after some milliseconds.
static void a_home_that_changes_is_asked_seldom(void) {
  fall_asleep();
  tsl_store_relaxed(&sleeper->loosened, 1);
  struct tsl_change change = tsl_change_begin(sleeper);
  uint64_t before = os_fake.calls[OS_FAKE_BARRIER];
  help(100);
  tsl_change_end(change);
  CHECK_GE(os_fake.calls[OS_FAKE_BARRIER] - before, 10);
  CHECK_LE(os_fake.calls[OS_FAKE_BARRIER] - before, 25);
}

// The parts of open epochs are heaps, too. One step finds the home that is due.
static void a_home_among_many_parts_has_its_turn(void) {
  fall_asleep();
  tsl_heap_current = &other->heap;
  for (unsigned i = 0; i < 1000; i++) {
    tslab_epoch_options own = {.size = sizeof own, .place = TSLAB_PLACE_OWN};
    CHECK(tslab_epoch_malloc(tslab_epoch_open("request", &own), 100) != NULL);
  }
  tsl_heap_current = &sleeper->heap;
  help(4 * DELAY_MS);
  tsl_store_relaxed(&sleeper->loosened, 1);
  help(1);
  CHECK_EQ(sleeper->loosened, 0);
}

static void a_lap_over_many_homes_goes_on(void) {
  fall_asleep();
  for (unsigned i = 0; i < 600; i++) CHECK(tsl_home_take() != NULL);
  help(4 * DELAY_MS);
  while (tsl_rounds_due_ms() == 0) help(1);
  tsl_store_relaxed(&sleeper->loosened, 1);  // the last one on the list
  for (unsigned laps = 0; laps < 3; laps++) {
    CHECK_EQ(sleeper->loosened, 1);
    tsl_rounds_step();
    CHECK_EQ(tsl_rounds_due_ms(), 0);
  }
  CHECK_EQ(sleeper->loosened, 0);
}

// The helper sleeps until then.
static void the_next_round_is_known(void) {
  fall_asleep();
  help(4 * DELAY_MS);
  CHECK_EQ(tsl_rounds_due_ms(), UINT64_MAX);
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  while (sleeper->look_ms == 0) help(1);
  uint64_t began_ms = sleeper->rest_ms - DELAY_MS - 1;
  help(2);
  CHECK_EQ(tsl_rounds_due_ms(), began_ms + DELAY_MS + 1);
  os_fake.now_ms = tsl_rounds_due_ms();
  help(100);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
}

// RO1
static void a_busy_home_is_tended_once_a_delay(void) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  for (unsigned ms = 0; ms < 20 * DELAY_MS; ms++) {
    tsl_store_relaxed(&sleeper->loosened, 1);
    help(1);
  }
  CHECK_GE(sleeper->rounds, 17);
  CHECK_LE(sleeper->rounds, 20);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
}

// One burst: all slabs fill, and empty but for their first blocks. Returns how many milliseconds of
// the trough behind it pass before its pages are back.
static unsigned burst(void) {
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % SLAB_BLOCKS != 0) blocks[i] = tsl_fast_malloc(CLASS_BYTES);
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % SLAB_BLOCKS != 0) tsl_fast_free(blocks[i]);
  tsl_home_rest_all(sleeper);
  tsl_heap_current = &sleeper->heap;
  size_t wanted = os_fake.purged_bytes + SLABS * DEAD_BYTES;
  unsigned ms = 0;
  for (; os_fake.purged_bytes < wanted; ms++) help(1);
  return ms;
}

// The same in slabs whose pages never went back.
static unsigned burst_elsewhere(void) {
  static void *others[BLOCKS];
  for (unsigned i = 0; i < BLOCKS; i++) others[i] = tsl_fast_malloc(2 * CLASS_BYTES);
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % SLAB_BLOCKS != 0) tsl_fast_free(others[i]);
  tsl_home_rest_all(sleeper);
  tsl_heap_current = &sleeper->heap;
  size_t before = os_fake.purged_bytes;
  unsigned ms = 0;
  for (; os_fake.purged_bytes == before; ms++) help(1);
  return ms;
}

// Decision 031: what is taken again soon waits four times as long, until nothing was for a while.
static void pages_that_are_taken_again_wait(void) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
  CHECK_GE(burst(), 4 * DELAY_MS);
  CHECK_GE(burst(), 4 * DELAY_MS);
  tsl_options.soft_limit = 1;
  CHECK_LE(burst(), 2 * DELAY_MS);
  CHECK_LE(burst(), 30);  // the delay is 5 ms
  tsl_options.soft_limit = 0;
  help(80 * DELAY_MS);
  CHECK_LE(burst_elsewhere(), 3 * DELAY_MS);
}

static void keep_warm(const char *label) {
  tslab_epoch epoch = tslab_epoch_open(label, NULL);
  CHECK(tslab_epoch_malloc(epoch, CLASS_BYTES) != NULL);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  sleeper = tsl_heap_current->home;
}

// W3. Also where the rest of the cell's slab is at hand.
static void warm_parts_of_a_sleeper_go_back(void) {
  tended_begin();
  keep_warm("one");
  help(2 * DELAY_MS);
  CHECK_EQ(sleeper->own->warm_count, 0);
  CHECK(tsl_warm_valid(sleeper));
  CHECK_EQ(os_fake.purged_bytes, 1 << TSL_CELL_PAGE_LOG2);
  help(4 * DELAY_MS);
  uint32_t rounds = sleeper->rounds;
  help(4 * DELAY_MS);
  CHECK_EQ(sleeper->rounds, rounds);
  state_check();
}

// One of two has waited long enough: the thread may be awake, and gives it back itself.
static void warm_parts_of_a_thread_that_kept_one_lately_stay(void) {
  tended_begin();
  keep_warm("one");
  help(DELAY_MS - 20);
  keep_warm("two");
  CHECK_EQ(sleeper->own->warm_count, 2);
  help(DELAY_MS - 20);
  CHECK_EQ(sleeper->own->warm_count, 2);
  help(2 * DELAY_MS);
  CHECK_EQ(sleeper->own->warm_count, 0);
  keep_warm("one");
  CHECK_EQ(sleeper->own->warm_count, 1);
  state_check();
}

static void warm_parts_of_a_thread_in_a_change_stay(void) {
  tended_begin();
  keep_warm("one");
  struct tsl_change change = tsl_change_begin(sleeper);
  help(4 * DELAY_MS);
  CHECK_EQ(sleeper->own->warm_count, 1);
  tsl_change_end(change);
  help(4 * DELAY_MS);
  CHECK_EQ(sleeper->own->warm_count, 0);
}

// A home that was tended when a fork came, and one that the fork left torn.
static void the_child_of_a_fork_begins_anew(void) {
  fall_asleep();
  free_all_but_firsts();
  tsl_home_rest_all(sleeper);
  help(1);
  sleeper->tended = 1;
  tsl_purge_loosen(0, BLOCKS);
  tsl_rounds_after_fork();
  CHECK_EQ(sleeper->tended, 0);
  CHECK_EQ(tsl_purge_returnable_bytes(), tsl_purge_idle_bytes());
  sleeper->heap.torn = TSL_HEAP_PERHAPS_TORN;
  tsl_store_relaxed(&sleeper->loosened, 1);
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, 0);
  sleeper->heap.torn = TSL_HEAP_WHOLE;
  help(4 * DELAY_MS);
  CHECK_EQ(os_fake.purged_bytes, SLABS * DEAD_BYTES);
}

int main(void) {
  RUN_UNLESS_SECURE(pages_of_a_sleeper_go_back);
  RUN_UNLESS_SECURE(a_turn_is_short);
  RUN_UNLESS_SECURE(pages_of_remote_frees_go_back);
  RUN_UNLESS_SECURE(pages_of_own_epochs_go_back);
  RUN_UNLESS_SECURE(pages_of_remote_frees_in_own_epochs_go_back);
  RUN_UNLESS_SECURE(older_cells_of_open_epochs_go_back);
  RUN_UNLESS_SECURE(an_epoch_that_keeps_its_pages_is_passed_over);
  RUN_UNLESS_SECURE(a_part_that_is_shut_is_passed_over);
  RUN_UNLESS_SECURE(a_part_may_be_sealed_between_two_turns);
  RUN_UNLESS_SECURE(a_second_wave_of_remote_frees_goes_back);
  RUN_UNLESS_SECURE(pages_of_shared_epochs_go_back);
  RUN_UNLESS_SECURE(pages_of_remote_frees_in_shared_epochs_go_back);
  RUN_UNLESS_SECURE(a_torn_part_is_left_alone);
  RUN_UNLESS_SECURE(what_was_taken_again_is_due_again);
  RUN_UNLESS_SECURE(few_slabs_taken_again_do_not_wait);
  RUN_UNLESS_SECURE(sixteen_slabs_taken_again_wait);
  RUN_UNLESS_SECURE(dense_slabs_stay);
  RUN_UNLESS_SECURE(a_round_goes_on_behind_a_closed_slab);
  RUN_UNLESS_SECURE(an_owner_in_a_change_is_left_alone);
  RUN_UNLESS_SECURE(units_of_a_sleeper_go_back);
  RUN_UNLESS_SECURE(units_of_a_thread_that_opens_slabs_stay);
  RUN_UNLESS_SECURE(what_an_ended_thread_kept_hot_goes_back);
  RUN_UNLESS_SECURE(a_round_that_is_refused_in_its_middle_begins_anew);
  RUN_UNLESS_SECURE(a_home_that_changes_is_asked_seldom);
  RUN_UNLESS_SECURE(a_home_among_many_parts_has_its_turn);
  RUN_UNLESS_SECURE(a_lap_over_many_homes_goes_on);
  RUN_UNLESS_SECURE(the_next_round_is_known);
  RUN_UNLESS_SECURE(pages_that_are_taken_again_wait);
  RUN_UNLESS_SECURE(a_busy_home_is_tended_once_a_delay);
  RUN_UNLESS_SECURE(warm_parts_of_a_sleeper_go_back);
  RUN_UNLESS_SECURE(warm_parts_of_a_thread_that_kept_one_lately_stay);
  RUN_UNLESS_SECURE(warm_parts_of_a_thread_in_a_change_stay);
  RUN_UNLESS_SECURE(the_child_of_a_fork_begins_anew);
  return test_status();
}
