#include "heap/count.h"

#include "blocks.h"
#include "state/bin.h"
#include "takes.h"
#include "upkeep/collect.h"

enum { MOST_HELD = 20000, SIZES = 12, STEPS = 20000 };
static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// Exact number of allocations of a class.
static uint64_t allocations(unsigned class) {
  uint64_t taken = heap->store->allocations[class] - tsl_bin_ahead(&heap->bins[class]);
  return taken - tsl_stock_blocks(&heap->store->stocks[class]);
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
  tsl_home_collect(heap->home);
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
    uint32_t before = tsl_bin_ahead(&heap->bins[class]);
    heap->store->allocations[class] += (uint64_t)soon - before;
    heap->store->seen[class] += soon - before;
    heap->bins[class].until += soon - before;
    CHECK_EQ(allocations(class), expected);
    unsigned count = test_random_below(&seed, 100);
    alloc_many(70, count);
    expected += count;
    if (i % 3 == 0) free_many();
    if (i % 7 == 0) tsl_home_collect(heap->home);
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

int main(void) {
  RUN(every_allocation_is_counted);
  RUN(count_survives_recounting);
  RUN(last_block_is_counted);
  return test_status();
}
