#include "upkeep/tick.h"

#include "blocks.h"
#include "epoch/open.h"
#include "heap/count.h"
#include "heap/part.h"
#include "heap/store.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "state/change.h"
#include "takes.h"
#include "tell/rows.h"
#include "upkeep/pool.h"
#include "upkeep/reports.h"
#include "upkeep/sparse.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// A thread that takes only hot blocks gives back what others left, though it sleeps at first.
static void sleepers_memory_goes_back(void) {
  bool clean;
  open_heaps();
  tsl_units_give(tsl_units_take(40, 1, &clean), 40);
  alloc_many(64, 100);
  CHECK(!heap->home->awake);
  void *last = alloc(64);
  uint32_t rounds = 0;
  for (; tsl_units_dirty() != 0; rounds++) {
    tsl_fast_free(last);
    last = alloc(64);
    if (rounds % 1000 == 0) os_fake.now_ms++;
    CHECK(rounds < 1000000);
  }
  CHECK_GE(rounds, 16000);
  for (rounds = 0; heap->home->awake; rounds++) {
    tsl_fast_free(last);
    last = alloc(64);
    if (rounds % 1000 == 0) os_fake.now_ms++;
    CHECK(rounds < 1000000);
  }
  free_many();
}

// Calls of the system that give memory back, while the thread allocates for some delays.
static uint64_t purges_of_a_busy_thread(void) {
  uint64_t before = os_fake.calls[OS_FAKE_PURGE];
  for (unsigned ms = 0; ms < 500; ms++) {
    for (unsigned i = 0; i < 1000; i++) tsl_fast_free(tsl_fast_malloc(64));
    os_fake.now_ms++;
  }
  return os_fake.calls[OS_FAKE_PURGE] - before;
}

// HE1: neither idle units nor pages of its own sparse slabs.
static void beside_a_helper_no_other_thread_gives_back(void) {
  static void *sparse[20000];
  bool clean;
  open_heaps();
  tsl_options.detain_ms = 0;
  tsl_tend_is_possible = true;
  tsl_purge_set_helper(true);
  for (unsigned i = 0; i < 20000; i++) sparse[i] = tsl_fast_malloc(512);
  for (unsigned i = 0; i < 20000; i++)
    if (i % 128 != 0) tsl_fast_free(sparse[i]);
  tsl_units_give(tsl_units_take(40, 1, &clean), 40);
  tsl_fast_free(tsl_fast_malloc(16 << 20));
  CHECK_EQ(purges_of_a_busy_thread(), 0);
  CHECK_GE(tsl_units_dirty(), 40);
  tsl_purge_set_helper(false);
  CHECK_NE(purges_of_a_busy_thread(), 0);
}

// Neither does it refill, nor has it anything to give back.
static void sleepers_begin_to_sample_and_end(void) {
  open_heaps();
  tsl_report_start();
  alloc(64);
  struct tsl_control_row *control = TSL_ROW(control, 0);
  const struct tsl_process_row *process = TSL_ROW(process, 0);
  void *last = alloc(64);
  for (unsigned i = 0; i < 2; i++) {
    control->sample_bytes = i == 0 ? 1 << 20 : TSL_NUMBER_no_samples;
    for (unsigned rounds = 0; (heap->home->own->points.mean != 0) != (i == 0); rounds++) {
      tsl_fast_free(last);
      last = alloc(64);
      if (rounds % 1000 == 0) os_fake.now_ms++;
      CHECK(rounds < 2 * TSL_REST_MOST_PACE);
    }
    CHECK_EQ(process->sample_bytes, i == 0 ? 1 << 20 : 0);
  }
}

// When a tick of a heap that sleeps finds something to do, the next looks come soon.
static void a_tick_wakes(void) {
  bool clean;
  open_heaps();
  alloc(64);
  const struct tsl_bin *bin = &heap->bins[tsl_sizeclass_of(64)];
  tsl_units_give(tsl_units_take(40, 1, &clean), 40);
  for (unsigned ms = 0; !heap->home->awake; ms++) {
    CHECK_GE(bin->until, 1000);
    os_fake.now_ms++;
    heap->home->ticks = 1;  // due at the next refill
    for (unsigned i = 0; i < 64; i++) alloc(64);
    CHECK(ms < 1000);
  }
  CHECK_LE(bin->until, 512);
}

// The next hot block of the class is due for a look.
static void make_due(unsigned class) {
  heap->store->seen[class] -= heap->bins[class].until;
  heap->bins[class].until = 0;
}

// Looks at the clock come half as often where they were too early, but not soon after one that was
// late; twice as often where they were late, and as often as before where they were right.
static void looks_follow_the_clock(void) {
  enum { LATE_MS = TSL_TICK_MS + 1 };
  static const struct {
    bool is_awake, was_late;
    int after_ms;  // a tick was due
    uint32_t pace, then;
  } cases[] = {
      {true, false, -1, 64, 128},
      {true, false, -1, 512, 512},
      {true, true, -1, 64, 64},
      {true, false, 0, 64, 64},
      {true, false, TSL_TICK_MS, 64, 64},
      {true, false, LATE_MS, 64, 32},
      {true, false, LATE_MS, 16, 16},
      {false, false, -1, 512, 1024},
      {false, false, -1, 65536, 65536},
      {false, true, -1, 16384, 16384},
      {false, false, LATE_MS, 65536, 32768},
      {false, false, LATE_MS, 512, 16384},
  };
  open_heaps();
  os_fake.now_ms = 1000;
  unsigned class = takes_class(64);
  alloc_many(64, 600);  // so many that no slab waits
  void *last = alloc(64), *block = alloc(64);
  tsl_fast_free(last);  // a bin keeps its last block for last
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tsl_fast_free(block);
    heap->home->awake = cases[i].is_awake;
    heap->home->was_late = cases[i].was_late;
    heap->home->pace = cases[i].pace;
    heap->home->heap.store->sparse.due_ms = os_fake.now_ms - (uint64_t)cases[i].after_ms;
    make_due(class);
    block = alloc(64);
    CHECK_EQ(heap->home->pace, cases[i].then);
    bool is_late = cases[i].after_ms < 0 ? cases[i].was_late : cases[i].after_ms == LATE_MS;
    CHECK_EQ(heap->home->was_late, is_late);
  }
}

// A slow thread that allocates of several classes in turns: the second look comes right after the
// first, which was late.
static void classes_in_turns_keep_the_pace(void) {
  enum { CLASSES = 5, TURNS = 100000 };
  open_heaps();
  void *lasts[CLASSES];
  for (unsigned i = 0; i < CLASSES; i++) {
    size_t bytes = 64 + 64 * i;
    for (size_t held = 0; held < TSL_UNIT_BYTES / 2; held += bytes) alloc(bytes);  // no slab waits
    lasts[i] = alloc(bytes);
    tsl_fast_free(alloc(bytes));  // a bin keeps its last block for last
  }
  for (unsigned n = 0; n < TURNS; n++) {
    if (n % 10 == 0) os_fake.now_ms++;
    for (unsigned i = 0; i < CLASSES; i++) {
      tsl_fast_free(lasts[i]);
      lasts[i] = alloc(64 + 64 * i);
    }
    CHECK_LE(heap->home->pace, TSL_REST_LEAST_PACE);
  }
}

// Also in the part in which the thread is.
static void a_part_wakes_with_its_home(void) {
  open_heaps();
  tslab_epoch id;
  struct tsl_heap *part = blocks_open_part(heap, 0, &id);
  tsl_store_open(part);
  unsigned class = takes_class(64);
  CHECK_GE(part->bins[class].until, TSL_MOST_PACE);
  tsl_heap_current = part;
  tsl_home_wake(heap->home);
  tsl_heap_current = heap;
  CHECK_LE(part->bins[class].until, TSL_MOST_PACE);
}

// Who takes a home over from a fast thread looks as often as in a new one.
static void a_home_in_the_pool_forgets_its_pace(void) {
  open_heaps();
  alloc(64);
  heap->home->pace = TSL_REST_LEAST_PACE;  // it was faster before
  make_due(takes_class(64));
  heap->bins[takes_class(64)].until = TSL_REST_MOST_PACE;
  heap->store->seen[takes_class(64)] += TSL_REST_MOST_PACE;
  tsl_home_pool(heap->home);
  CHECK_EQ(heap->home->pace, TSL_REST_LEAST_PACE);
  CHECK_LE(heap->bins[takes_class(64)].until, TSL_REST_LEAST_PACE);
}

// At the sixteenth refill units go that the thread did not need, and a class is looked at. Reports
// wait for the clock.
static void refills_within_a_tick_do_their_part(void) {
  bool clean;
  open_heaps();
  struct tsl_home *home = heap->home;
  tsl_home_tick(home);
  uint64_t told_ms = home->told_ms;
  for (unsigned ms = 0; ms < TSL_TICK_MS; ms++) {
    home->own->units[0] = tsl_units_take(1, 1, &clean);
    home->unit_count = home->unit_low = 1;
    home->taken = 3;
    home->ticks = 1;
    os_fake.now_ms = told_ms + ms;
    uint32_t rested = home->heap.store->rest.next;
    tsl_home_refilled(home);
    CHECK_EQ(home->unit_count, 0);
    CHECK_NE(home->heap.store->rest.next, rested);
    CHECK_EQ(home->ticks, TSL_TICK_REFILLS);
    CHECK_EQ(home->taken, 0);
    CHECK_EQ(home->told_ms, told_ms);
  }
  home->ticks = 1;
  os_fake.now_ms = told_ms + TSL_TICK_MS;
  tsl_home_refilled(home);
  CHECK_EQ(home->told_ms, told_ms + TSL_TICK_MS);
}

// Before the sixteenth refill a thread at rest asks no clock; one that is awake does.
static void refills_ask_the_clock_while_awake(void) {
  open_heaps();
  struct tsl_home *home = heap->home;
  for (unsigned awake = 0; awake < 2; awake++) {
    tsl_home_tick(home);
    uint64_t told_ms = home->told_ms;
    os_fake.now_ms += TSL_TICK_MS;
    home->awake = awake != 0;
    home->ticks = 2;
    tsl_home_refilled(home);
    CHECK_EQ(home->told_ms, awake != 0 ? os_fake.now_ms : told_ms);
  }
}

// A thread that has parts of many shared epochs asks them seldom, and stays as it is meanwhile.
static void many_parts_are_asked_seldom(void) {
  open_heaps();
  struct tsl_home *home = heap->home;
  home->own->shared_count = 31;
  for (unsigned awake = 0; awake < 2; awake++) {
    home->awake = awake != 0;
    for (unsigned ticks = 0; ticks < 3; ticks++) {
      tsl_home_tick(home);
      CHECK_EQ(home->awake, awake != 0);
    }
    tsl_home_tick(home);
    CHECK(!home->awake);
  }
  home->own->shared_count = 0;
}

// The only one of its parts that is on the list, with a store.
static struct tsl_part *share_part(struct tsl_home *home) {
  tslab_epoch id;
  CHECK_EQ(tsl_epoch_open_shared(0, &id), 0);
  struct tsl_part *part = tsl_part_take(home, tsl_epoch_slot(id));
  tsl_part_share(part);
  tsl_store_open(&part->heap);
  home->own->shared_count = 31;
  home->awake = false;
  return part;
}

static void tick_with_slabs_that_wait(struct tsl_part *part) {
  struct tsl_home *home = part->heap.home;
  home->heap.store->sparse = (struct tsl_sparse){.due_ms = UINT64_MAX};
  part->heap.store->sparse = (struct tsl_sparse){.slabs_wait = true, .due_ms = UINT64_MAX};
  tsl_home_tick(home);
}

static void the_part_that_is_looked_at_wakes(void) {
  open_heaps();
  struct tsl_part *part = share_part(heap->home);
  tick_with_slabs_that_wait(part);
  CHECK_EQ(heap->home->own->shared_turn, part->heap.number);
  CHECK(heap->home->awake);
  heap->home->awake = false;
  tick_with_slabs_that_wait(part);
  CHECK_EQ(heap->home->own->shared_turn, 0);
  CHECK(!heap->home->awake);
}

// Whoever was looked at.
static void parts_wake_as_all_are_asked(void) {
  open_heaps();
  struct tsl_part *part = share_part(heap->home);
  heap->home->own->shared_turn = part->heap.number;
  heap->home->own->shared_unasked = 3;
  tick_with_slabs_that_wait(part);
  CHECK_EQ(heap->home->own->shared_turn, 0);
  CHECK(heap->home->awake);
}

int main(void) {
  RUN(refills_within_a_tick_do_their_part);
  RUN(refills_ask_the_clock_while_awake);
  RUN(many_parts_are_asked_seldom);
  RUN(the_part_that_is_looked_at_wakes);
  RUN(parts_wake_as_all_are_asked);
  RUN_UNLESS_SECURE(sleepers_memory_goes_back);
  RUN_UNLESS_SECURE(beside_a_helper_no_other_thread_gives_back);
  RUN_UNLESS_SECURE(sleepers_begin_to_sample_and_end);
  RUN_UNLESS_SECURE(a_tick_wakes);
  RUN_UNLESS_SECURE(looks_follow_the_clock);
  RUN_UNLESS_SECURE(classes_in_turns_keep_the_pace);
  RUN_UNLESS_SECURE(a_part_wakes_with_its_home);
  RUN_UNLESS_SECURE(a_home_in_the_pool_forgets_its_pace);
  return test_status();
}
