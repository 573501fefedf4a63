#include "epoch/heap.h"

#include "alloc/realloc.h"
#include "base/options.h"
#include "blocks.h"
#include "memory/growth.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "memory/units.h"
#include "state.h"
#include "takes.h"

enum { MOST_HELD = 20000, SIZES = 12, STEPS = 20000 };

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// As another thread would free.
static void free_many_remotely(void) {
  tsl_heap_current = other;
  free_many();
  tsl_heap_current = heap;
}

static unsigned bin_length(unsigned class) {
  unsigned length = 0;
  for (struct tsl_free_block *at = heap->bins[class].head; at != &tsl_bin_end; length++) {
    at = (struct tsl_free_block *)(at->link ^ (uintptr_t)at);
  }
  return length;
}

// A thread that takes only hot blocks gives back what others left, though it sleeps at first.
static void sleepers_memory_goes_back(void) {
  bool clean;
  open_heaps();
  tsl_units_give(tsl_units_take(40, 1, &clean), 40);
  alloc_many(64, 100);
  CHECK(!heap->awake);
  void *last = alloc(64);
  uint32_t rounds = 0;
  for (; tsl_units_dirty() != 0; rounds++) {
    tsl_fast_free(last);
    last = alloc(64);
    if (rounds % 1000 == 0) os_fake.now_ms++;
    CHECK(rounds < 1000000);
  }
  CHECK_GE(rounds, 16000);
  for (rounds = 0; heap->awake; rounds++) {
    tsl_fast_free(last);
    last = alloc(64);
    if (rounds % 1000 == 0) os_fake.now_ms++;
    CHECK(rounds < 1000000);
  }
  free_many();
}

// When a tick of a heap that sleeps finds something to do, the next looks come soon.
static void a_tick_wakes(void) {
  bool clean;
  open_heaps();
  alloc(64);
  const struct tsl_bin *bin = &heap->bins[tsl_sizeclass_of(64)];
  tsl_units_give(tsl_units_take(40, 1, &clean), 40);
  for (unsigned ms = 0; !heap->awake; ms++) {
    CHECK_GE(bin->until, 1000);
    os_fake.now_ms++;
    heap->ticks = 1;  // due at the next refill
    for (unsigned i = 0; i < 64; i++) alloc(64);
    CHECK(ms < 1000);
  }
  CHECK_LE(bin->until, 512);
}

// Looks at the clock come half as often where they were too early, twice as often where they were
// late, and as often as before where they were right.
static void looks_follow_the_clock(void) {
  static const struct {
    int late_ms;
    uint16_t pace, then;
  } cases[] = {{-1, 64, 128}, {-1, 512, 512}, {0, 64, 64}, {1, 64, 32}, {1, 16, 16}};
  open_heaps();
  os_fake.now_ms = 1000;
  unsigned class = takes_class(64);
  void *last = alloc(64), *block = alloc(64);
  tsl_fast_free(last);  // a bin keeps its last block for last
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tsl_fast_free(block);
    heap->awake = true;
    heap->pace = cases[i].pace;
    heap->store->sparse_due_ms = os_fake.now_ms - (uint64_t)cases[i].late_ms;
    heap->store->seen[class] -= heap->bins[class].until;
    heap->bins[class].until = 0;  // the next hot block is due
    block = alloc(64);
    CHECK_EQ(heap->pace, cases[i].then);
  }
}

// Exact number of allocations of a class.
static uint64_t allocations(unsigned class) {
  uint64_t taken = heap->store->allocations[class] - tsl_bin_until(&heap->bins[class]);
  return taken - tsl_stock_blocks(&heap->store->stocks[class]);
}

static void new_heaps_are_empty(void) {
  open_heaps();
  CHECK_EQ(heap->number, 1);
  CHECK_EQ(other->number, 2);
  CHECK_EQ(other->tag, 2 << TSL_CODE_BITS);
  CHECK(heap->home == heap);
  state_check();
  CHECK_EQ(tsl_units_open(), 0);
}

static void no_heap_without_memory(void) {
  open_heaps();
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_heap_take() != NULL) continue;
  os_fake_recover();
  CHECK(tsl_heap_take() != NULL);
  state_check();
}

static void heaps_come_to_an_end(void) {
  os_fake.limit_bytes = (size_t)1 << 24;
  CHECK(tsl_region_init());
  uint32_t count = 0;
  while ((heap = tsl_heap_take()) != NULL) CHECK_EQ(heap->number, ++count);
  CHECK_EQ(count, tsl_region.limit_heaps - 1);
  tsl_heap_pool(tsl_heap_at(7));
  CHECK(tsl_heap_take() == tsl_heap_at(7));
  CHECK(tsl_heap_take() == NULL);
}

static void blocks_belong_to_the_heap(void) {
  open_heaps();
  for (size_t bytes = TSL_SECURE ? 1 : 0; bytes <= TSL_CANARY_LIMIT; bytes += bytes / 16 + 1) {
    void *block = alloc(bytes);
    unsigned class = takes_class(bytes);
    struct tsl_place place = tsl_slab_place(class, block);
    CHECK_EQ(tsl_map_lookup(block), heap->tag | class * 2);
    CHECK(place.index >= 0);
    CHECK_EQ(place.slab->class, class);
  }
  state_check();
}

static void blocks_are_distinct(void) {
  open_heaps();
  alloc_many(48, 5000);
  for (unsigned i = 0; i < block_count; i++) *(unsigned *)blocks[i] = i;
  for (unsigned i = 0; i < block_count; i++) CHECK_EQ(*(unsigned *)blocks[i], i);
  state_check();
}

static void last_freed_is_first_allocated(void) {
  open_heaps();
  alloc_many(64, 10);
  void *one = blocks[3], *two = blocks[7], *three = blocks[5];
  tsl_fast_free(one);
  tsl_fast_free(two);
  tsl_fast_free(three);
  CHECK(alloc(64) == three);
  CHECK(alloc(64) == two);
  state_check();
}

// B5: what a full bin does not take becomes bits of the slab.
static void full_bins(void) {
  static const size_t sizes[] = {1, 64, 1000, 5000, 32768};
  open_heaps();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned class = takes_class(sizes[i]);
    unsigned limit = tsl_bin_limit(class);
    alloc_many(sizes[i], 3 * limit);
    state_check();
    free_many();
    CHECK_EQ(bin_length(class), limit);
    CHECK_EQ(heap->bins[class].room, 0);
    state_check();
    alloc_many(sizes[i], 3 * limit);
    CHECK_EQ(bin_length(class), 1);
    state_check();
    block_count = 0;
  }
}

// The bin keeps one block for the fast path's sake, and gives it away when there is nothing else.
static void last_block(void) {
  open_heaps();
  void *first = alloc(32768), *second = alloc(32768);
  tsl_fast_free(first);
  os_fake_fail_all(OS_FAKE_COMMIT);
  bool found = false;
  for (void *block; (block = tsl_fast_malloc(32768)) != NULL;) found |= block == first;
  CHECK(found);
  CHECK_EQ(errno, ENOMEM);
  CHECK(tsl_fast_malloc(32768) == NULL);
  state_check();
  tsl_fast_free(second);
  CHECK(tsl_fast_malloc(32768) == second);
  CHECK(tsl_fast_malloc(32768) == NULL);
  state_check();
}

static void no_memory_and_again(void) {
  open_heaps();
  os_fake_fail_all(OS_FAKE_COMMIT);
  for (size_t bytes = 16; bytes <= TSL_SMALL_LIMIT; bytes *= 2) {
    CHECK(tsl_fast_malloc(bytes) == NULL);
    CHECK(tsl_heap_refill(heap, takes_class(bytes)) == NULL);
  }
  state_check();
  os_fake_recover();
  for (size_t bytes = 16; bytes <= TSL_SMALL_LIMIT; bytes *= 2) alloc(bytes);
  state_check();
}

// The slabs with room come before new ones.
static void freed_blocks_are_used_again(void) {
  open_heaps();
  alloc_many(256, 4000);
  size_t owned = state_owned_units();
  for (int round = 0; round < 5; round++) {
    for (unsigned i = 0; i < 4000; i += 2) tsl_fast_free(blocks[i]);
    for (unsigned i = 0; i < 4000; i += 2) blocks[i] = alloc(256);
    state_check();
  }
  CHECK_LE(state_owned_units(), owned + 1);
}

static void emptied_slabs_are_cached(void) {
  open_heaps();
  tsl_options.cache_units = 5;
  alloc_many(1024, 64 * 12);
  CHECK_GE(state_owned_units(), 12);
  free_many();
  CHECK_EQ(heap->unit_count, 5);
  CHECK_GE(tsl_unit_cache_units(), 4);
  state_check();
  size_t free = tsl_units_free();
  alloc_many(512, 64 * 12);
  CHECK_EQ(tsl_units_free(), free);
  state_check();
}

static void large_slabs_go_to_the_segments(void) {
  open_heaps();
  alloc_many(32768, 80);
  size_t free = tsl_units_free();
  free_many();
  CHECK_EQ(heap->unit_count, 0);
  CHECK_GE(tsl_units_free(), free + 4 * 4);
  state_check();
}

static void collected_heap_keeps_nothing(void) {
  open_heaps();
  for (size_t bytes = 16; bytes <= TSL_SMALL_LIMIT; bytes *= 2) alloc_many(bytes, 100);
  free_many();
  tsl_heap_collect(heap);
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(heap->unit_count, 0);
  state_check();
  alloc_many(100, 100);
  state_check();
}

static void collected_heap_keeps_live_blocks(void) {
  open_heaps();
  alloc_many(128, 5000);
  for (unsigned i = 0; i < block_count; i++) {
    if (i % 64 != 0) tsl_fast_free(blocks[i]);
  }
  tsl_heap_collect(heap);
  state_check();
  for (unsigned i = 0; i < block_count; i += 64) {
    CHECK_EQ(*(unsigned char *)blocks[i], 0xa5);
    tsl_fast_free(blocks[i]);
  }
  tsl_heap_collect(heap);
  CHECK_EQ(state_owned_units(), 0);
}

static void remote_frees_come_back(void) {
  open_heaps();
  alloc_many(200, 3000);
  size_t owned = state_owned_units();
  for (int round = 0; round < 4; round++) {
    free_many_remotely();
    state_check();
    alloc_many(200, 3000);
    state_check();
  }
  CHECK_LE(state_owned_units(), owned + 4);
  free_many_remotely();
  tsl_heap_collect(other);
  tsl_heap_collect(heap);
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

// H3
static void medium_blocks_stay_with_who_frees_them(void) {
  open_heaps();
  void *last = alloc(3000), *block = alloc(3000);
  uint32_t out = tsl_slab_at(tsl_unit_of(block))->out;
  free_as(other, last);
  free_as(other, block);
  CHECK_EQ(tsl_slab_at(tsl_unit_of(block))->out, out);
  CHECK(tsl_heap_valid(other));
  state_check();
  tsl_heap_current = other;
  CHECK(alloc(3000) == block);
  CHECK_EQ(tsl_map_lookup(block) >> TSL_CODE_BITS, heap->number);
  tsl_fast_free(block);
  tsl_heap_rest_all(other);
  CHECK(tsl_heap_valid(other));
  CHECK_EQ(tsl_map_lookup(alloc(3000)) >> TSL_CODE_BITS, other->number);
  tsl_heap_look_at_ready(heap, 1);
  CHECK_EQ(tsl_slab_at(tsl_unit_of(block))->out, out - 2);
  state_check();
}

static void as_many_as_a_bin_holds(void) {
  open_heaps();
  alloc_many(3000, 100);
  unsigned class = takes_class(3000), most = tsl_bin_limit(class);
  CHECK(most < 100);
  free_many_remotely();
  CHECK_EQ(other->bins[class].room, 0);
  CHECK(tsl_heap_valid(other));
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  CHECK_EQ(bin_length(class), 0);
  state_check();
}

// Their neighbours' lines are the owner's: who has freed one must not write to it again.
static void small_blocks_go_home(void) {
  open_heaps();
  void *block = alloc(1024);
  free_as(other, block);
  tsl_heap_current = other;
  CHECK(alloc(1024) != block);
}

// One refill looks at a few slabs only, however many have remote frees.
static void refill_has_a_budget(void) {
  open_heaps();
  alloc_many(1024, 64 * 40);
  free_many_remotely();
  size_t owned = state_owned_units();
  alloc_many(1024, 64 + 1);
  CHECK_GE(state_owned_units(), owned - 2 * 4);
  CHECK(heap->pending != 0);
  state_check();
  tsl_heap_collect(heap);
  CHECK_EQ(heap->pending, 0);
  state_check();
}

static void pooled_heap_is_taken_warm(void) {
  open_heaps();
  alloc_many(64, 100);
  tsl_fast_free(blocks[9]);
  tsl_fast_free(blocks[8]);
  tsl_heap_pool(heap);
  CHECK(tsl_heap_take() == heap);
  CHECK(alloc(64) == blocks[8]);
  state_check();
}

// What others free in a pooled heap is found by those that go on, one heap a tick.
static void pooled_heaps_are_looked_at(void) {
  open_heaps();
  alloc_many(1024, 64 * 8);
  tsl_heap_current = other;
  tsl_heap_pool(heap);
  free_many();
  CHECK_GE(state_owned_units(), 8);
  for (int i = 0; i < 64 * 64 * 6; i++) CHECK(tsl_fast_malloc(1024) != NULL || i > 64 * 64);
  CHECK_LE(state_owned_units(), 64 * 6 + 2);
  CHECK_EQ(heap->unit_count, 0);
  state_check();
}

// What a thread's end leaves hot goes back in time, if no other thread takes it over.
static void pooled_heaps_rest(void) {
  open_heaps();
  alloc_many(1024, 100);
  alloc_many(64, 1000);
  free_many();
  CHECK(state_owned_units() != 0);
  tsl_heap_current = other;
  tsl_heap_pool(heap);
  for (int i = 0; i < 1000; i++) tsl_heap_look_at_pool();
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

static void pool_is_collected(void) {
  open_heaps();
  alloc_many(64, 3000);
  free_many();
  tsl_heap_pool(heap);
  tsl_heap_pool(other);
  tsl_heap_current = &tsl_heap_empty;
  tsl_heap_collect_all();
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(state_cached_units(), tsl_unit_cache_units());
  state_check();
  struct tsl_heap *again = tsl_heap_take(), *last = tsl_heap_take();
  CHECK(again != last && (again == heap || again == other) && (last == heap || last == other));
  CHECK_EQ(tsl_heap_take()->number, 3);
}

// Whoever takes a heap passes over one that somebody looks at, and leaves it in the pool.
static void pooled_heap_in_use_stays(void) {
  open_heaps();
  tsl_heap_pool(heap);
  tsl_heap_pool(other);
  other->hold = TSL_HEAP_LOOKED_AT;
  CHECK(tsl_heap_take() == heap);
  CHECK_EQ(tsl_heap_take()->number, 3);
  other->hold = TSL_HEAP_POOLED;
  CHECK(tsl_heap_take() == other);
}

// A thread that went on to other sizes does not hold on to slabs that could be empty.
static void resting_classes_give_back(void) {
  open_heaps();
  unsigned class = takes_class(512);
  alloc_many(512, 4000);
  free_many();
  CHECK(bin_length(class) > 1);
  for (int i = 0; i < 3000; i++) {
    alloc_many(20000, 20);
    free_many();
  }
  CHECK_EQ(bin_length(class), 0);
  CHECK(heap->store->stocks[class].slabs == NULL);
  state_check();
}

static void every_allocation_is_counted(void) {
  unsigned class = takes_class(70);
  open_heaps();
  CHECK_EQ(allocations(class), 0);
  alloc_many(70, 1000);
  CHECK_EQ(allocations(class), 1000);
  free_many();
  alloc_many(70, 777);
  CHECK_EQ(allocations(class), 1777);
  tsl_heap_collect(heap);
  CHECK_EQ(allocations(class), 1777);
  alloc_many(70, 23);
  CHECK_EQ(allocations(class), 1800);
}

// The counter of the fast path runs out now and then; here at once.
static void count_survives_recounting(void) {
  unsigned class = takes_class(70);
  uint64_t expected = 0, seed = 1;
  open_heaps();
  for (int i = 0; i < 3000; i++) {
    unsigned soon = 1 + test_random_below(&seed, 80);
    uint32_t before = tsl_bin_until(&heap->bins[class]);
    heap->store->allocations[class] += (uint64_t)soon - before;
    heap->store->seen[class] += soon - before;
    heap->bins[class].until += soon - before;
    CHECK_EQ(allocations(class), expected);
    unsigned count = test_random_below(&seed, 100);
    alloc_many(70, count);
    expected += count;
    if (i % 3 == 0) free_many();
    if (i % 7 == 0) tsl_heap_collect(heap);
    if (block_count > MOST_HELD - 100) free_many();
    CHECK_EQ(allocations(class), expected);
  }
}

static void last_block_is_counted(void) {
  unsigned class = takes_class(32000);
  unsigned count = 1;
  open_heaps();
  tsl_fast_free(alloc(32000));
  os_fake_fail_all(OS_FAKE_COMMIT);
  while (tsl_fast_malloc(32000) != NULL) count++;
  CHECK_EQ(allocations(class), count);
}

// Every other block stays live, so that no slab goes back.
static void double_frees_are_reported(void) {
  open_heaps();
  unsigned class = takes_class(512);
  alloc_many(512, 400);
  tsl_fast_free(blocks[0]);
  CHECK(blocks_is_reported(blocks[0], "is free already"));
  for (unsigned i = 2; i < 400; i += 2) tsl_fast_free(blocks[i]);
  CHECK_EQ(heap->bins[class].room, 0);
  CHECK(blocks_is_reported(blocks[398], "is free already"));
  state_check();
  tsl_heap_current = other;
  tsl_fast_free(blocks[1]);
  CHECK(blocks_is_reported(blocks[1], "is free already"));
  tsl_heap_current = heap;
  state_check();
}

static void interior_pointers_are_reported(void) {
  open_heaps();
  alloc_many(512, 400);
  for (unsigned i = 0; i < 400; i += 2) tsl_fast_free(blocks[i]);
  CHECK(blocks_is_reported((char *)blocks[1] + 16, "not the beginning of a block"));
  tsl_heap_current = other;
  CHECK(blocks_is_reported((char *)blocks[1] + 256, "not the beginning of a block"));
  tsl_heap_current = heap;
  void *medium = alloc(3000);
  tsl_heap_current = other;
  CHECK(blocks_is_reported((char *)medium + 256, "not the beginning of a block"));
  state_check();
}

static void broken_links_are_reported(void) {
  open_heaps();
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  alloc_many(64, 64);
  void *hit = blocks[9];
  tsl_fast_free(blocks[8]);
  tsl_fast_free(hit);
  memset(hit, 0x41, 8);
  capture_start();
  for (int i = 0; i < 200; i++) (void)tsl_fast_malloc(64);
  const char *said = capture_end();
  CHECK_EQ(capture_lines(said), 1);
  CHECK(strstr(said, "heap corruption: the free block") != NULL);
  CHECK(strstr(said, "was written to, or freed twice; 64 bytes, default epoch") != NULL);
  state_check();
}

// Nobody but its thread changes a heap that has one.
static void owned_heaps_are_not_looked_at(void) {
  open_heaps();
  alloc_many(1024, 200);
  free_many_remotely();
  uint64_t ready = heap->ready;
  CHECK(ready != 0);
  for (int i = 0; i < 10; i++) tsl_heap_look_at_pool();
  CHECK_EQ(heap->ready, ready);
  CHECK_EQ(heap->pending, 0);
}

// The static heap of threads that have none is never written: no operation may change it.
static void empty_heap_stays_empty(void) {
  static struct tsl_heap before;
  open_heaps();
  void *block = alloc(3000), *large = tsl_malloc_large(100000, 1, NULL);
  memcpy(&before, &tsl_heap_empty, sizeof before);
  tsl_heap_current = &tsl_heap_empty;
  tsl_fast_free(block);
  tsl_fast_free(large);
  tsl_fast_free(NULL);
  tsl_trim(0);
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding is not written either
  CHECK(memcmp(&before, &tsl_heap_empty, sizeof before) == 0);
}

// Random operations of two heaps on each other's blocks.
static struct live {
  unsigned char *address;
  size_t bytes;
  unsigned char value;
} live[400];

static void live_check(const struct live *at) {
  for (size_t i = 0; i < at->bytes; i += 61) CHECK_EQ(at->address[i], at->value);
}

static void random_operation(uint64_t *seed) {
  static const size_t most[SIZES] = {16, 16, 64, 64, 64, 256, 256, 1024, 1024, 4096, 8192, 32768};
  struct live *at = &live[test_random_below(seed, sizeof live / sizeof *live)];
  tsl_heap_current = test_random_below(seed, 2) == 0 ? heap : other;
  if (test_random_below(seed, 500) == 0) tsl_heap_collect(tsl_heap_current);
  if (at->address != NULL) {
    live_check(at);
    tsl_fast_free(at->address);
    at->address = NULL;
    return;
  }
  size_t bytes = test_random_below(seed, 1 + (unsigned)most[test_random_below(seed, SIZES)]);
  *at = (struct live){tsl_fast_malloc(bytes), bytes, (unsigned char)test_random(seed)};
  CHECK(at->address != NULL);
  memset(at->address, at->value, bytes);
}

static void random_operations(void) {
  uint64_t seed = 9;
  open_heaps();
  for (int step = 0; step < STEPS; step++) {
    check_context_set("step %d", step);
    random_operation(&seed);
    if (step % 100 == 0) state_check();
  }
  for (struct live *at = live; at < live + sizeof live / sizeof *live; at++) {
    if (at->address != NULL) tsl_fast_free(at->address);
  }
  tsl_heap_pool(other);
  tsl_heap_current = heap;
  tsl_heap_collect_all();
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

static void broken_heaps_are_found(void) {
  open_heaps();
  unsigned class = takes_class(1024);
  alloc_many(1024, 200);
  free_many();
  CHECK(tsl_heap_valid(heap));
  heap->bins[class].room--;
  CHECK(!tsl_heap_valid(heap));
  heap->bins[class].room++;
  CHECK(heap->store->stocks[class].slabs != NULL);
  heap->store->stocks[class].slabs->listed = false;
  CHECK(!tsl_heap_valid(heap));
  heap->store->stocks[class].slabs->listed = true;
  CHECK(tsl_heap_valid(heap));
}

int main(void) {
  RUN(new_heaps_are_empty);
  RUN(no_heap_without_memory);
  RUN(heaps_come_to_an_end);
  RUN(blocks_belong_to_the_heap);
  RUN(blocks_are_distinct);
  RUN_UNLESS_SECURE(last_freed_is_first_allocated);
  RUN_UNLESS_SECURE(full_bins);
  RUN(last_block);
  RUN(no_memory_and_again);
  RUN(freed_blocks_are_used_again);
  RUN(emptied_slabs_are_cached);
  RUN_UNLESS_SECURE(large_slabs_go_to_the_segments);
  RUN(collected_heap_keeps_nothing);
  RUN(collected_heap_keeps_live_blocks);
  RUN(remote_frees_come_back);
  RUN_UNLESS_SECURE(medium_blocks_stay_with_who_frees_them);
  RUN_UNLESS_SECURE(as_many_as_a_bin_holds);
  RUN(small_blocks_go_home);
  RUN_UNLESS_SECURE(refill_has_a_budget);
  RUN_UNLESS_SECURE(pooled_heap_is_taken_warm);
  RUN_UNLESS_SECURE(pooled_heaps_are_looked_at);
  RUN_UNLESS_SECURE(pooled_heaps_rest);
  RUN(pool_is_collected);
  RUN(pooled_heap_in_use_stays);
  RUN_UNLESS_SECURE(resting_classes_give_back);
  RUN_UNLESS_SECURE(sleepers_memory_goes_back);
  RUN_UNLESS_SECURE(a_tick_wakes);
  RUN(every_allocation_is_counted);
  RUN(count_survives_recounting);
  RUN(last_block_is_counted);
  RUN(double_frees_are_reported);
  RUN(interior_pointers_are_reported);
  RUN_UNLESS_SECURE(broken_links_are_reported);
  RUN(owned_heaps_are_not_looked_at);
  RUN_UNLESS_SECURE(looks_follow_the_clock);
  RUN(empty_heap_stays_empty);
  RUN(random_operations);
  RUN(broken_heaps_are_found);
  return test_status();
}
