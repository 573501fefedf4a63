#include "upkeep/tick.h"

#include "blocks.h"
#include "epoch/open.h"
#include "heap/part.h"
#include "heap/store.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "state/change.h"
#include "takes.h"
#include "tell/rows.h"
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

// Looks at the clock come half as often where they were too early, twice as often where they were
// late, and as often as before where they were right.
static void looks_follow_the_clock(void) {
  static const struct {
    bool is_awake;
    int late_ms;
    uint32_t pace, then;
  } cases[] = {{true, -1, 64, 128},
               {true, -1, 512, 512},
               {true, 0, 64, 64},
               {true, 1, 64, 32},
               {true, 1, 16, 16},
               {false, -1, 512, 1024},
               {false, -1, 1 << 16, 1 << 16},
               {false, 1, 1 << 16, 1 << 15},
               {false, 1, 512, 1 << 14}};
  open_heaps();
  os_fake.now_ms = 1000;
  unsigned class = takes_class(64);
  alloc_many(64, 600);  // so many that no slab waits
  void *last = alloc(64), *block = alloc(64);
  tsl_fast_free(last);  // a bin keeps its last block for last
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tsl_fast_free(block);
    heap->home->awake = cases[i].is_awake;
    heap->home->pace = cases[i].pace;
    heap->home->heap.store->sparse.due_ms = os_fake.now_ms - (uint64_t)cases[i].late_ms;
    heap->store->seen[class] -= heap->bins[class].until;
    heap->bins[class].until = 0;  // the next hot block is due
    block = alloc(64);
    CHECK_EQ(heap->home->pace, cases[i].then);
  }
}

// What sixteen refills took goes on at once: units that the thread did not need. Reports, and what
// is idle in the process, wait for the clock.
static void refills_within_a_tick_do_their_part(void) {
  open_heaps();
  struct tsl_home *home = heap->home;
  tsl_home_tick(home);
  uint64_t told_ms = home->told_ms;
  for (unsigned ms = 0; ms < TSL_TICK_MS; ms++) {
    home->taken = 3;
    home->ticks = 1;
    os_fake.now_ms = told_ms + ms;
    tsl_home_refilled(home);
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
  return test_status();
}
