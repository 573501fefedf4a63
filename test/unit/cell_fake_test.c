#include "slab/cell.h"

#include "memory/growth.h"
#include "memory/units.h"
#include "os_fake.h"
#include "threads.h"

enum { HEAP = 3, EPOCH = 5, MOST_BLOCKS = 1000, PLANS_MOST_BLOCKS = 5 };

static tsl_cell_number cell;

// A unit for cells, whose first one is open.
static void open_cell(void) {
  bool clean;
  os_fake.limit_bytes = (size_t)1 << 26;
  CHECK(tsl_region_init());
  tsl_unit unit = tsl_units_take(1, 1, &clean);
  CHECK(unit != 0);
  cell = unit * TSL_UNIT_PAGES;
  tsl_cell_open(cell, HEAP, EPOCH);
}

static uint8_t *granules(void) { return tsl_granule_at(tsl_cell_address(cell)); }

// As if the heap had cut so many blocks of 32 bytes off the cell, and then stopped.
static void retire_with(uint32_t blocks, uint32_t freed) {
  for (uint32_t i = 0; i < blocks; i++) granules()[2 * i] = TSL_CLASS_OF_32 + 1;
  tsl_cell_at(cell)->blocks = blocks;
  tsl_cell_at(cell)->freed = freed;
  tsl_cell_at(cell)->granules = (uint16_t)(2 * blocks);
}

static void numbers_and_addresses(void) {
  open_cell();
  uintptr_t start = tsl_cell_address(cell);
  for (unsigned class = TSL_CELL_4K; class <= TSL_CELL_64K; class ++) {
    uint32_t bytes = tsl_sizeclasses[class].bytes;
    for (uintptr_t offset = 0; offset < TSL_UNIT_BYTES; offset += 1000) {
      tsl_cell_number expected = cell + (tsl_cell_number)(offset / bytes * (bytes / 4096));
      CHECK_EQ(tsl_cell_of((void *)(start + offset), class), expected);
      CHECK_EQ(tsl_cell_address(expected), start + offset / bytes * bytes);
      CHECK(tsl_granule_at(start + offset) == granules() + offset / 16);
    }
  }
  CHECK(tsl_cell_at(cell + 15) == &tsl_cells_at(cell / 16)->cells[15]);
  CHECK(tsl_cell_remote(cell + 15) == &tsl_cells_at(cell / 16)->remote[15]);
  CHECK(tsl_is_cell(TSL_CELL_4K) && !tsl_is_cell(TSL_CLASSES - 1));
}

// CE1: a cell counts from nothing, whatever its page was before.
static void opened(void) {
  open_cell();
  *tsl_cell_remote(cell) = 77;
  memset(tsl_cell_at(cell), 0xff, sizeof(struct tsl_cell));
  tsl_cell_open(cell, HEAP, EPOCH);
  CHECK_EQ(*tsl_cell_remote(cell), TSL_CELL_BIAS);
  CHECK_EQ(tsl_cell_at(cell)->heap, HEAP);
  CHECK_EQ(tsl_cell_at(cell)->epoch, EPOCH);
  CHECK_EQ(tsl_cell_at(cell)->blocks + tsl_cell_at(cell)->freed, 0);
  CHECK_EQ(tsl_cell_at(cell)->granules, 0);
  CHECK(tsl_cell_at(cell)->newer == 0 && tsl_cell_at(cell)->older == 0);
  CHECK_EQ(tsl_cell_out(cell), 0);
  CHECK_EQ(tsl_cell_sealed_out(cell), 0);
}

static void cleared(void) {
  open_cell();
  retire_with(10, 10);
  granules()[20] = 9;  // of the next cell, as it were
  tsl_cell_clear(cell);
  for (unsigned i = 0; i < 20; i++) CHECK_EQ(granules()[i], 0);
  CHECK_EQ(granules()[20], 9);
  CHECK_EQ(tsl_cell_at(cell)->heap, HEAP);
  CHECK_EQ(tsl_cell_at(cell)->epoch, EPOCH);
  CHECK_EQ(tsl_cell_at(cell)->blocks + tsl_cell_at(cell)->freed, 0);
  CHECK_EQ(tsl_cell_at(cell)->granules, 0);
}

static void closed(void) {
  static const struct tsl_cell nobody;
  open_cell();
  retire_with(10, 10);
  tsl_cell_at(cell)->newer = 1;
  tsl_cell_at(cell)->older = 2;
  tsl_cell_close(cell);
  for (unsigned i = 0; i < 20; i++) CHECK_EQ(granules()[i], 0);
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): it has no padding
  CHECK(memcmp(tsl_cell_at(cell), &nobody, sizeof nobody) == 0);
}

static void out_before_and_after_the_seal(void) {
  open_cell();
  retire_with(10, 3);
  CHECK_EQ(tsl_cell_out(cell), 7);
  CHECK(!tsl_cell_put_remote(cell));
  CHECK(!tsl_cell_put_remote(cell));
  CHECK_EQ(tsl_cell_out(cell), 5);
  CHECK_EQ(tsl_cell_seal(cell), 5);
  CHECK_EQ(tsl_cell_sealed_out(cell), 5);
  CHECK_EQ(tsl_cell_at(cell)->heap, 0);
  CHECK_EQ(tsl_cell_at(cell)->epoch, EPOCH);
  for (uint32_t out = 5; out != 1; out--) {
    CHECK_EQ(tsl_cell_out(cell), out);
    CHECK(!tsl_cell_put_remote(cell));
  }
  CHECK(tsl_cell_put_remote(cell));
  CHECK_EQ(tsl_cell_out(cell), 0);
}

// What is counted in the first `used` granules.
static uint32_t counted(uint32_t used, unsigned class) {
  uint32_t counts[TSL_CLASSES] = {0}, before[TSL_CLASSES] = {0};
  tsl_cell_at(cell)->granules = (uint16_t)used;
  tsl_cell_count(cell, UINT32_MAX, counts, before);
  return counts[class] + before[class];
}

static void live_blocks_are_counted_by_class(void) {
  open_cell();
  static const size_t sizes[] = {16, 100, 1000, 8192, 48, 16, 16};
  size_t at = 0;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned class = tsl_sizeclass_of(sizes[i]);
    uint32_t before = counted((uint32_t)at, class);
    granules()[at] = (uint8_t)(class + 1);
    at += tsl_sizeclasses[class].bytes / 16;
    CHECK_EQ(counted((uint32_t)at, class), before + 1);
  }
  CHECK_EQ(counted(TSL_GRANULES_BYTES, tsl_sizeclass_of(16)), 3);
  CHECK_EQ(counted(TSL_GRANULES_BYTES, tsl_sizeclass_of(100)), 1);
  granules()[1] |= TSL_CELL_FREED;  // of 100 bytes
  CHECK_EQ(counted(TSL_GRANULES_BYTES, tsl_sizeclass_of(100)), 0);
  granules()[at] = TSL_CLASSES;  // the largest class
  CHECK_EQ(counted(TSL_GRANULES_BYTES, TSL_CLASSES - 1), 1);
}

// Lays a block behind `at`, with these marks. Returns where the next one begins.
static unsigned lay(unsigned at, unsigned class, unsigned marks) {
  granules()[at] = (uint8_t)((class + 1) | marks);
  return at + tsl_sizeclasses[class].bytes / 16;
}

// Who frees one later knows whether it was counted. Between blocks there may be gaps.
static void the_counted_are_marked(void) {
  open_cell();
  unsigned small = tsl_sizeclass_of(80), kept = tsl_sizeclass_of(112), large = TSL_CLASSES - 1;
  unsigned freed = lay(3, small, 0), gap = lay(freed, small, TSL_CELL_FREED),
           at = lay(gap, kept, 0);
  unsigned last = lay(at + 2, large, 0);
  granules()[gap] |= TSL_CELL_COUNTED;
  tsl_cell_at(cell)->granules = (uint16_t)last;
  uint32_t counts[TSL_CLASSES] = {0}, before[TSL_CLASSES] = {0};
  CHECK_EQ(tsl_cell_count(cell, UINT32_MAX, counts, before), 3);
  CHECK(counts[small] == 1 && counts[large] == 1 && counts[kept] == 0);
  CHECK(before[kept] == 1 && before[small] == 0);
  CHECK_EQ(granules()[3], (small + 1) | TSL_CELL_COUNTED);
  CHECK_EQ(granules()[freed], (small + 1) | TSL_CELL_FREED);
  CHECK_EQ(granules()[at + 2], (large + 1) | TSL_CELL_COUNTED);
  CHECK_EQ(granules()[4] + granules()[at], 0);
}

// It looks for no more than are out.
static void the_last_one_that_is_out_ends_the_count(void) {
  open_cell();
  unsigned second = lay(0, TSL_CLASS_OF_32, 0);
  tsl_cell_at(cell)->granules = (uint16_t)lay(second, TSL_CLASS_OF_32, 0);
  uint32_t counts[TSL_CLASSES] = {0}, before[TSL_CLASSES] = {0};
  CHECK_EQ(tsl_cell_count(cell, 0, counts, before), 0);
  CHECK_EQ(tsl_cell_count(cell, 1, counts, before), 1);
  CHECK_EQ(granules()[0], (TSL_CLASS_OF_32 + 1) | TSL_CELL_COUNTED);
  CHECK_EQ(granules()[second], TSL_CLASS_OF_32 + 1);
}

// CE2: in every order of the seal and the frees by others, with some freed by the thread itself
// before, exactly one of them, the last, gives the cell back.
static void one_order(uint32_t blocks, uint32_t freed, uint32_t sealed_at) {
  uint32_t remote = blocks - freed, drained = 0;
  check_context_set("%u blocks, %u by the thread, seal after %u", blocks, freed, sealed_at);
  tsl_cell_open(cell, HEAP, EPOCH);
  retire_with(blocks, freed);
  for (uint32_t step = 0; step <= remote; step++) {
    if (step == sealed_at) {
      uint32_t out = tsl_cell_seal(cell);
      CHECK_EQ(out, remote - step);
      drained += out == 0;
    }
    if (step == remote) break;
    bool last = tsl_cell_put_remote(cell);
    CHECK_EQ(last, step + 1 == remote && sealed_at <= step);
    drained += last;
  }
  CHECK_EQ(drained, 1);
  CHECK_EQ(tsl_cell_out(cell), 0);
  tsl_cell_close(cell);
}

static void every_order_of_seal_and_frees(void) {
  open_cell();
  for (uint32_t blocks = 0; blocks <= PLANS_MOST_BLOCKS; blocks++) {
    for (uint32_t freed = 0; freed <= blocks; freed++) {
      for (uint32_t at = 0; at <= blocks - freed; at++) one_order(blocks, freed, at);
    }
  }
}

// The seal is two steps, and others free between them: what the thread itself counted, and the
// exchange. Then the exchange finds them.
static void frees_before_the_exchange_are_found(void) {
  open_cell();
  for (uint32_t remote = 0; remote <= PLANS_MOST_BLOCKS; remote++) {
    tsl_cell_open(cell, HEAP, EPOCH);
    retire_with(PLANS_MOST_BLOCKS, 0);
    tsl_cell_at(cell)->heap = 0;  // CE3: seen by these already
    for (uint32_t i = 0; i < remote; i++) CHECK(!tsl_cell_put_remote(cell));
    CHECK_EQ(tsl_cell_seal(cell), PLANS_MOST_BLOCKS - remote);
    for (uint32_t i = remote; i < PLANS_MOST_BLOCKS; i++)
      CHECK_EQ(tsl_cell_put_remote(cell), i + 1 == PLANS_MOST_BLOCKS);
    tsl_cell_close(cell);
  }
}

static uint32_t drained, started;

static void *put_share(void *unused) {
  __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < MOST_BLOCKS; i++) {
    if (tsl_cell_put_remote(cell)) __atomic_fetch_add(&drained, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

static void drained_once_among_threads(void) {
  pthread_t threads[THREADS];
  open_cell();
  for (int round = 0; round < 20; round++) {
    tsl_cell_open(cell, HEAP, EPOCH);
    retire_with(0, 0);
    tsl_cell_at(cell)->blocks = THREADS * MOST_BLOCKS + 50;
    tsl_cell_at(cell)->freed = 50;
    drained = started = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, put_share, NULL);
    while (__atomic_load_n(&started, __ATOMIC_RELAXED) == 0) continue;
    if (tsl_cell_seal(cell) == 0) __atomic_fetch_add(&drained, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(drained, 1);
    CHECK_EQ(tsl_cell_out(cell), 0);
    tsl_cell_close(cell);
  }
}

int main(void) {
  RUN(numbers_and_addresses);
  RUN(opened);
  RUN(cleared);
  RUN(closed);
  RUN(out_before_and_after_the_seal);
  RUN(live_blocks_are_counted_by_class);
  RUN(the_counted_are_marked);
  RUN(the_last_one_that_is_out_ends_the_count);
  RUN(every_order_of_seal_and_frees);
  RUN(frees_before_the_exchange_are_found);
  RUN(drained_once_among_threads);
  return test_status();
}
