#include "heap/mixed.h"
#include "tell/points.h"

#include "cut.h"
#include "epoch/inspect.h"
#include "heap/cells.h"
#include "heap/store.h"
#include "heap/total.h"
#include "state/cut_back.h"
#include "takes.h"
#include "upkeep/collect.h"
#include "upkeep/refill.h"

enum { KIB = 1 << 10, LIMIT_64K = 64 * KIB };

static void sizes_lie_back_to_back(void) {
  static const size_t sizes[] = {1, 17, 64, 500, 16, 1024, 100};
  open_part();
  uintptr_t next = (uintptr_t)alloc(16) + 16;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned class = takes_class(sizes[i]);
    void *block = alloc(sizes[i]);
    CHECK_EQ((uintptr_t)block, next);
    CHECK_EQ(class_at(block), TSL_CELL_4K);
    CHECK_EQ(tsl_cells_block_class(block), class);
    CHECK_EQ(tsl_usable(block), tsl_sizeclasses[class].bytes);
    CHECK_EQ(tsl_inspect_slot_of(block), slot);
    next += tsl_sizeclasses[class].bytes;
  }
  CHECK_EQ(heap->cell_blocks, 8);
  state_check();
}

// The first cell is small, since most epochs are; those behind it are large.
static void cells_grow(void) {
  open_part();
  alloc(64);
  CHECK_EQ(newest_bytes(), 4096);
  CHECK_EQ(held_bytes(), 4096);
  fill_newest();
  alloc(64);
  CHECK_EQ(newest_bytes(), LIMIT_64K);
  CHECK_EQ(held_bytes(), 4096 + LIMIT_64K);
  fill_newest();
  CHECK_EQ(heap->cell_count, 2);
  alloc(64);
  CHECK_EQ(newest_bytes(), LIMIT_64K);
  CHECK_EQ(heap->cell_count, 3);
  CHECK_EQ(heap->cell_pages, 1 + 16 + 16);
  state_check();
}

static void threads_hint_keeps_cells_small(void) {
  static const struct {
    unsigned threads;
    size_t largest;
  } hints[] = {{0, 65536}, {1, 65536}, {2, 65536}, {3, 16384}, {8, 16384}, {9, 4096}, {99, 4096}};
  open_part();
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
    tslab_epoch id;
    tslab_epoch_options options = {.threads = hints[i].threads};
    CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
    heap = &tsl_part_take(home->home, tsl_epoch_slot(id))->heap;
    tsl_heap_current = heap;
    alloc(64);
    CHECK_EQ(newest_bytes(), 4096);
    fill_newest();
    alloc(64);
    CHECK_EQ(newest_bytes(), hints[i].largest);
    state_check();
    block_count = 0;
  }
}

static void check_first_cell(size_t wanted, unsigned threads, size_t first, size_t second) {
  tslab_epoch id;
  tslab_epoch_options options = {.first_cell_bytes = wanted, .threads = threads};
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  heap = &tsl_part_take(home->home, tsl_epoch_slot(id))->heap;
  tsl_heap_current = heap;
  alloc(64);
  CHECK_EQ(newest_bytes(), first);
  fill_newest();
  alloc(64);
  CHECK_EQ(newest_bytes(), second);
  block_count = 0;
}

static void first_cell_is_an_option(void) {
  open_part();
  check_first_cell(0, 0, 4096, LIMIT_64K);
  check_first_cell(1, 0, 4096, LIMIT_64K);
  check_first_cell(4097, 0, 16384, LIMIT_64K);
  check_first_cell(16384, 0, 16384, LIMIT_64K);
  check_first_cell(16385, 0, LIMIT_64K, LIMIT_64K);
  check_first_cell(LIMIT_64K, 99, LIMIT_64K, LIMIT_64K);
  check_first_cell(10000, 99, 16384, 16384);
  state_check();
}

static void no_cells_is_an_option(void) {
  open_with((tslab_epoch_options){.first_cell_bytes = TSLAB_NO_CELLS});
  CHECK_EQ(tsl_epoch_at(slot)->first_cell, TSL_BINS);
  CHECK(!heap->cell_class);
  void *block = alloc(64);
  CHECK(!in_cell(block));
  CHECK_EQ(tsl_map_lookup(block), heap->tag | takes_class(64) * 2);
  CHECK_EQ(tsl_inspect_slot_of(block), slot);
  CHECK_EQ(held_bytes(), TSL_UNIT_BYTES);
  tslab_epoch_options options = {.first_cell_bytes = LIMIT_64K + 1};
  tslab_epoch id;
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  CHECK_EQ(tsl_epoch_at(tsl_epoch_slot(id))->first_cell, TSL_BINS);
  state_check();
}

// Four blocks of a size fit a cell that is opened for it.
static void large_blocks_get_large_cells(void) {
  open_part();
  void *block = alloc(5000);
  CHECK_EQ(class_at(block), TSL_CELL_64K);
  tslab_epoch_options options = {.threads = 99};
  tslab_epoch id;
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  heap = &tsl_part_take(home->home, tsl_epoch_slot(id))->heap;
  tsl_heap_current = heap;
  CHECK_EQ(class_at(alloc(1024)), TSL_CELL_4K);
  fill_newest();
  CHECK_EQ(class_at(alloc(4096)), TSL_CELL_16K);
  fill_newest();
  CHECK_EQ(class_at(alloc(4097)), TSL_CELL_64K);
  fill_newest();
  CHECK_EQ(class_at(alloc(64)), TSL_CELL_4K);
  state_check();
}

// Larger blocks open no cell.
static void larger_blocks_go_to_slabs(void) {
  open_part();
  void *block = alloc(TSL_CELL_BLOCK_LIMIT + 1);
  CHECK_EQ(class_at(block), takes_class(TSL_CELL_BLOCK_LIMIT + 1));
  CHECK_EQ(heap->cell_count, 0);
  CHECK(heap->cell_class);
  CHECK_EQ(held_bytes(), tsl_sizeclasses[class_at(block)].slab_bytes);
  CHECK(in_cell(alloc(TSL_CELL_BLOCK_LIMIT)));
  fill_newest();
  CHECK(!in_cell(alloc(TSL_SMALL_LIMIT)));
  CHECK_EQ(heap->cell_count, 1);
  CHECK(in_cell(alloc(16)));
  state_check();
}

static uint64_t cut_bytes(void) { return heap->cell_next - heap->cell_start; }

// The next one is cut where a block began that was cut last and is freed.
static void the_last_block_is_cut_again(void) {
  open_part();
  void *first = alloc(64), *last = alloc(500);
  tsl_fast_free(last);
  CHECK(alloc(16) == last);
  tsl_fast_free(first);
  CHECK(alloc(64) == (char *)last + 16);
  CHECK_EQ(heap->cell_blocks, 3);
  CHECK_EQ(tsl_cell_shares_objects(heap->cell_freed), 1);
  CHECK_EQ(tsl_total_of_part(heap).objects, 4);
  CHECK_EQ(tsl_total_of_part(heap).bytes, 64 + takes(500) + 16 + 64);
  state_check();
}

static void blocks_freed_last_first_leave_nothing(void) {
  open_part();
  alloc_many(100, 30);
  while (block_count != 0) tsl_fast_free(blocks[--block_count]);
  CHECK_EQ(cut_bytes(), 0);
  CHECK_EQ(heap->cell_blocks, 0);
  CHECK_EQ(tsl_total_of_part(heap).objects, 30);
  tsl_mixed_retire(heap);
  CHECK_EQ(heap->cut_objects, 30);
  CHECK_EQ(heap->freed_objects, 30);
  CHECK_EQ(heap->cut_granules, 30 * takes(100) / 16);
  CHECK_EQ(heap->freed_granules, heap->cut_granules);
  CHECK_EQ(heap->gone_granules, heap->cut_granules);
  CHECK_EQ(*tsl_granule_at(tsl_cell_address(heap->cells)), 0);
  state_check();
}

// The end of its epoch has to find it.
static void a_kept_block_is_not_cut_back(void) {
  open_part();
  alloc_many(64, 2);
  CHECK_EQ(tslab_epoch_keep(blocks[1]), 0);
  tsl_fast_free(blocks[1]);
  CHECK_EQ(cut_bytes(), 128);
  CHECK(alloc(64) != blocks[1]);
  state_check();
}

// Else churn would take the points of what stays.
static void while_samples_are_taken_nothing_is_cut_again(void) {
  open_part();
  void *first = alloc(64);
  tsl_points_mean = 1 << 30;
  tsl_fast_free(first);
  CHECK(alloc(64) != first);
  tsl_points_mean = 0;
  state_check();
}

// What lies behind the end of the blocks is none.
static void a_block_that_was_cut_back_leaves_no_mark(void) {
  open_part();
  char *first = alloc(64), *second = alloc(64);
  tsl_fast_free(second);
  CHECK_EQ(*tsl_granule_at((uintptr_t)second), 0);
  CHECK(tsl_mixed_aligned(heap, takes_class(64), 1024) == first + 1024);
  state_check();
  char *third = alloc(64), *fourth = alloc(64);
  tsl_fast_free(fourth);
  CHECK(tsl_realloc(third, 500) == third);
  CHECK_EQ(*tsl_granule_at((uintptr_t)fourth), 0);
  state_check();
}

// For reports, as long as no other was cut back, and the cell is the newest one.
static void the_last_block_that_was_cut_back_is_known(void) {
  open_part();
  uintptr_t first = (uintptr_t)alloc(64), second = (uintptr_t)alloc(96);
  CHECK_EQ(tsl_cut_back_byte(heap, second), 0);
  tsl_fast_free((void *)second);
  CHECK_EQ(tsl_cut_back_byte(heap, second), tsl_granule_byte(takes_class(96)));
  CHECK_EQ(tsl_cut_back_byte(heap, second + 16), 0);
  tsl_fast_free((void *)first);
  CHECK_EQ(tsl_cut_back_byte(heap, first), tsl_granule_byte(takes_class(64)));
  CHECK_EQ(tsl_cut_back_byte(heap, second), 0);
  tsl_mixed_retire(heap);
  CHECK_EQ(tsl_cut_back_byte(heap, 0), 0);
}

// The helper may give back what lies so far behind.
static void far_behind_nothing_is_cut_again(void) {
  enum { KIBS = 12, FAR = TSL_CELL_MOST_BACK };
  open_with((tslab_epoch_options){.first_cell_bytes = LIMIT_64K});
  alloc_many(64, KIBS * KIB / 64);
  while (block_count != 0) tsl_fast_free(blocks[--block_count]);
  CHECK_EQ(cut_bytes(), KIBS * KIB - FAR);
  CHECK_EQ(tsl_cell_shares_objects(heap->cell_freed), (KIBS * KIB - FAR) / 64);
  tsl_fast_free(alloc(64));
  CHECK_EQ(cut_bytes(), KIBS * KIB - FAR);
  state_check();
}

// It has to tell what it did, and to look at what idles; and it wants slabs.
static void a_thread_that_frees_at_once_comes_to_the_end(void) {
  enum { RECUT_BYTES = 128 * KIB };
  open_part();
  uint64_t bytes = 0;
  for (; heap->cell_class; bytes += 64) {
    tsl_fast_free(alloc(64));
    CHECK_LE(bytes, RECUT_BYTES + 4096);
  }
  CHECK_GE(bytes, RECUT_BYTES);
  CHECK_EQ(tsl_total_of_part(heap).bytes, bytes);
  state_check();
}

// A program that frees each block soon stays in one cell.
static void empty_newest_cell_starts_again(void) {
  open_part();
  uintptr_t first = (uintptr_t)alloc(700);
  tsl_fast_free((void *)first);
  for (int i = 0; i < 250; i++) {
    void *one = alloc(700), *two = alloc(64);
    CHECK_EQ(cell_of(one), cell_of((void *)first));
    tsl_fast_free(one);
    tsl_fast_free(two);
  }
  CHECK_EQ(heap->cell_count, 1);
  CHECK_EQ(held_bytes(), 4096);
  state_check();
}

// The same when the next block is too large for the cell that is empty.
static void large_block_after_an_empty_cell(void) {
  open_part();
  tsl_fast_free(alloc(16));
  void *block = alloc(8000);
  CHECK(in_cell(block));
  state_check();
}

// What was allocated before the restart is no block any more.
static void restart_forgets(void) {
  open_part();
  void *first = alloc(48);
  while (heap->cell_end - heap->cell_next >= 48) alloc_many(48, 1);
  free_in_order();
  tsl_fast_free(first);
  CHECK_EQ(heap->cell_freed & UINT32_MAX, heap->cell_blocks);
  CHECK(alloc(128) == first);
  CHECK_EQ(heap->cell_blocks, 1);
  CHECK_EQ(heap->cell_freed, 0);
  CHECK_EQ(tsl_cells_block_class(first), takes_class(128));
  CHECK_EQ(tsl_cells_block_class((char *)first + 48), TSL_BINS);
  state_check();
}

// Full cells: the first, and three behind it. Returns how many blocks they have.
static unsigned fill_four(void) {
  for (unsigned i = 0; i < 4; i++) {
    alloc_many(64, 1);
    fill_newest();
  }
  CHECK_EQ(heap->cell_count, 4);
  CHECK_EQ(block_count, (4096 + 3 * LIMIT_64K) / 64);
  return block_count;
}

static void free_range_as_other(unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) free_as(other, blocks[i]);
}

// Those whose last block another thread freed, when a new cell is wanted.
static void dead_oldest_cells_are_given_back(void) {
  open_part();
  unsigned count = fill_four();
  free_range_as_other(0, 64 + 1024);
  CHECK_EQ(heap->cell_count, 4);
  void *block = alloc(64);
  CHECK(in_cell(block));
  CHECK_EQ(heap->cell_count, 3);
  CHECK_EQ(heap->cells_oldest, cell_of(blocks[count - 1025]));
  CHECK_EQ(held_bytes(), 3 * LIMIT_64K);
  state_check();
}

static void half_dead_cells_go_on(void) {
  open_part();
  unsigned count = fill_four();
  free_range_as_other(count / 2, count);
  CHECK(in_cell(alloc(64)));
  CHECK(heap->cell_class);
  state_check();
}

static void more_than_half_dead_go_on_in_slabs(void) {
  open_part();
  unsigned count = fill_four();
  for (unsigned i = 0; i < count; i++) {
    if (i % 2 == 0) tsl_fast_free(blocks[i]);
  }
  free_as(other, blocks[1]);
  void *block = alloc(64);
  CHECK(!in_cell(block));
  CHECK_EQ(tsl_map_lookup(block), heap->tag | takes_class(64) * 2);
  CHECK(!heap->cell_class);
  CHECK(!in_cell(alloc(16)));
  state_check();
  for (unsigned i = 3; i < count; i += 2) tsl_fast_free(blocks[i]);
  tsl_fast_free(block);
  CHECK_EQ(heap->cell_count, 1);  // which has the block that another thread freed
  state_check();
}

// Three cells are too few to tell.
static void young_epochs_keep_cells(void) {
  open_part();
  for (unsigned i = 0; i < 3; i++) {
    alloc_many(64, 1);
    fill_newest();
  }
  for (unsigned i = 0; i < 511; i++) tsl_fast_free(blocks[i]);
  CHECK(in_cell(alloc(64)));
  CHECK(heap->cell_class);
  state_check();
}

// Allocates and frees so many batches of a quarter of a cell, in the order in which they came; some
// blocks of each live on when wanted.
static void live_by_batches(unsigned batches, unsigned kept) {
  for (unsigned i = 0; i < batches; i++) {
    unsigned lives = block_count + kept;
    alloc_many(64, 16);
    for (unsigned at = lives; at < block_count; at++) tsl_fast_free(blocks[at]);
    block_count = lives;
  }
}

// Where a hard limit is near, a smaller cell will do; no smaller one than fits.
static void a_limit_makes_cells_smaller(void) {
  open_with((tslab_epoch_options){.hard_limit_bytes = 4096 + 16384});
  alloc(64);
  fill_newest();
  alloc(64);
  CHECK_EQ(newest_bytes(), 16384);
}

static void a_limit_leaves_cells_that_hold_the_block(void) {
  open_with((tslab_epoch_options){.hard_limit_bytes = 4096 + 16384});
  alloc(64);
  alloc(TSL_CELL_BLOCK_LIMIT);
  CHECK_EQ(newest_bytes(), 16384);
}

static void who_frees_most_goes_on_in_slabs(void) {
  open_part();
  live_by_batches(31, 0);
  CHECK(heap->cell_class);
  live_by_batches(LIMIT_64K / 1024 + 6, 0);
  CHECK(!heap->cell_class && !in_cell(alloc(64)));
  state_check();
}

static void who_keeps_a_third_stays_in_cells(void) {
  open_part();
  live_by_batches(100, 5);
  CHECK(heap->cell_class && in_cell(alloc(64)));
  free_many();
  state_check();
}

// Slabs of many parts at a time are more memory than they are worth.
static void a_ninth_part_of_a_thread_stays_in_cells(void) {
  open_part();
  tslab_epoch id;
  for (unsigned i = 0; i < TSL_MOST_STORES; i++) {
    tsl_store_open(blocks_open_part(home, 0, &id));
    if (i == 0) CHECK_EQ(home->home->stores, 1);
  }
  CHECK_EQ(home->home->stores, TSL_MOST_STORES);
  struct tsl_heap *ninth = blocks_open_part(home, 0, &id);
  live_by_batches(100, 0);
  CHECK(ninth->cell_class && in_cell(alloc(64)));
}

static void large_epochs_go_on_in_slabs(void) {
  open_part();
  void *block = alloc(64);
  for (; in_cell(block); block = alloc(64)) {
    CHECK_LE(block_count, 20000);
    blocks[block_count++] = block;
  }
  CHECK_EQ(heap->cell_pages, 1 + 16 * 16);
  CHECK_EQ(block_count, (heap->cell_pages << TSL_CELL_PAGE_LOG2) / 64);
  CHECK(!heap->cell_class);
  CHECK_EQ(heap->slab_count, 1);
  state_check();
  free_many();
  tsl_fast_free(block);
  CHECK_EQ(heap->cell_count, 0);
  CHECK_EQ(heap->cell_pages, 0);
  CHECK(!in_cell(alloc(64)));
  state_check();
}

// With cells of 64 KiB alone, 16 of them are a MiB to the byte.
static void a_mib_is_the_end_of_cells(void) {
  open_with((tslab_epoch_options){.first_cell_bytes = LIMIT_64K});
  for (void *block = alloc(64); in_cell(block); block = alloc(64)) CHECK_LE(block_count++, 20000);
  CHECK_EQ(block_count, 16 * LIMIT_64K / 64);
  CHECK_EQ(heap->cell_pages, 256);
  state_check();
}

// Every alignment up to a page, for blocks of which none is a multiple of it by itself.
static void aligned_cuts(void) {
  static const size_t sizes[] = {16, 48, 100, 1000, 4096, 8192};
  open_part();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned class = takes_class(sizes[i]);
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
      check_context_set("%zu bytes at %zu", sizes[i], alignment);
      alloc(16);
      void *block = tsl_mixed_aligned(heap, class, alignment);
      CHECK(block != NULL);
      CHECK_EQ((uintptr_t)block % alignment, 0);
      CHECK(in_cell(block));
      CHECK_EQ(tsl_cells_block_class(block), class);
      memset(block, 0xa5, sizes[i]);
      void *next = alloc(16);
      CHECK((char *)next >= (char *)block + tsl_sizeclasses[class].bytes ||
            cell_of(next) != cell_of(block));
      if (i % 2 == 0) tsl_fast_free(block);
    }
    state_check();
  }
}

// A new cell has room for the block and the gap before it.
static void aligned_cut_opens_a_cell(void) {
  open_with((tslab_epoch_options){.threads = 99});
  void *block = tsl_mixed_aligned(heap, takes_class(64), 4096);
  CHECK(block != NULL);
  CHECK_EQ((uintptr_t)block % 4096, 0);
  tsl_cell_number first = cell_of(block);
  alloc(16);
  block = tsl_mixed_aligned(heap, takes_class(1024), 1024);
  CHECK_EQ((uintptr_t)block % 1024, 0);
  fill_newest();
  block = tsl_mixed_aligned(heap, takes_class(8192), 4096);
  CHECK(block != NULL);
  CHECK(cell_of(block) != first);
  CHECK_EQ((uintptr_t)block % 4096, 0);
  fill_newest();
  uint32_t count = heap->cell_count;
  CHECK(tsl_mixed_aligned(heap, takes_class(TSL_SMALL_LIMIT), 4096) == NULL);
  CHECK_EQ(heap->cell_count, count);
  state_check();
}

// As above: a cell that is empty, but too small for the block.
static void aligned_cut_after_an_empty_cell(void) {
  open_part();
  tsl_fast_free(alloc(16));
  void *block = tsl_mixed_aligned(heap, takes_class(4096), 4096);
  CHECK(block != NULL);
  CHECK_EQ((uintptr_t)block % 4096, 0);
  tsl_fast_free(block);
  block = tsl_mixed_aligned(heap, takes_class(8192), 4096);
  CHECK(block != NULL);
  state_check();
}

// Home heaps have no cells of their own.
static void home_heaps_are_not_mixed(void) {
  open_part();
  CHECK(tsl_mixed_refill(home, 0) == NULL);
  CHECK(tsl_mixed_aligned(home, 0, 64) == NULL);
  CHECK(!in_cell(tsl_heap_refill(home, 0)));
  state_check();
}

static void retired_cells_keep_their_counts(void) {
  open_part();
  alloc_many(48, 20);
  for (unsigned i = 0; i < 5; i++) tsl_fast_free(blocks[i]);
  tsl_mixed_retire(heap);
  const struct tsl_cell *cell = tsl_cell_at(heap->cells);
  CHECK_EQ(cell->blocks, 20);
  CHECK_EQ(cell->freed, 5);
  CHECK_EQ(cell->granules, 20 * 3);
  CHECK_EQ(tsl_cell_out(heap->cells), 15);
  CHECK_EQ(heap->cut_granules, 20 * 3);
  CHECK_EQ(heap->freed_granules, 5 * 3);
  CHECK(heap->cell_end == 0 && heap->cell_next == 0 && heap->cell_start == 0);
  state_check();
  tsl_mixed_retire(heap);
  CHECK_EQ(cell->blocks, 20);
  CHECK(alloc(48) != blocks[19]);
  CHECK_EQ(heap->cell_count, 2);
  state_check();
}

static struct live {
  unsigned char *address;
  size_t bytes;
  unsigned char value;
} live[3000];

// A thread without a home gets one for the first block of a slab.
static unsigned random_freer(uint64_t *seed, const void *block) {
  bool is_in_cell = tsl_code_is_cell(tsl_entry_code(tsl_map_lookup(block)));
  return test_random_below(seed, is_in_cell ? 6 : 5);
}

static void random_free(uint64_t *seed, struct live *at) {
  struct tsl_heap *freers[] = {heap, heap, heap, home, other, &tsl_home_empty.heap};
  for (size_t i = 0; i < at->bytes; i += 37) CHECK_EQ(at->address[i], at->value);
  free_as(freers[random_freer(seed, at->address)], at->address);
  at->address = NULL;
}

static void random_operation(uint64_t *seed) {
  struct live *at = &live[test_random_below(seed, sizeof live / sizeof *live)];
  if (at->address != NULL) return random_free(seed, at);
  size_t alignment = (size_t)16 << test_random_below(seed, 9);
  size_t bytes = 1 + test_random_below(seed, test_random_below(seed, 100) == 0 ? 9000 : 200);
  unsigned char *block = NULL;
  if (test_random_below(seed, 20) == 0 && bytes <= TSL_CELL_BLOCK_LIMIT) {
    block = tsl_mixed_aligned(heap, takes_class(bytes), alignment);
    CHECK_EQ((uintptr_t)block % alignment, 0);
  }
  if (block == NULL) block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  *at = (struct live){block, bytes, (unsigned char)test_random(seed)};
  memset(block, at->value, bytes);
}

static void random_operations(void) {
  uint64_t seed = 11;
  bool slabs_seen = false;
  open_part();
  for (int step = 0; step < 30000; step++) {
    check_context_set("step %d", step);
    random_operation(&seed);
    if (step % 500 == 0) state_check();
    slabs_seen |= !heap->cell_class;
  }
  CHECK(slabs_seen);
  for (struct live *at = live; at < live + sizeof live / sizeof *live; at++) {
    if (at->address != NULL) random_free(&seed, at);
  }
  tsl_home_collect(heap->home);
  state_check();
}

int main(void) {
  RUN_UNLESS_SECURE(sizes_lie_back_to_back);
  RUN_UNLESS_SECURE(cells_grow);
  RUN_UNLESS_SECURE(threads_hint_keeps_cells_small);
  RUN_UNLESS_SECURE(first_cell_is_an_option);
  RUN(no_cells_is_an_option);
  RUN_UNLESS_SECURE(large_blocks_get_large_cells);
  RUN_UNLESS_SECURE(larger_blocks_go_to_slabs);
  RUN_UNLESS_SECURE(the_last_block_is_cut_again);
  RUN_UNLESS_SECURE(blocks_freed_last_first_leave_nothing);
  RUN_UNLESS_SECURE(a_kept_block_is_not_cut_back);
  RUN_UNLESS_SECURE(while_samples_are_taken_nothing_is_cut_again);
  RUN_UNLESS_SECURE(a_block_that_was_cut_back_leaves_no_mark);
  RUN_UNLESS_SECURE(the_last_block_that_was_cut_back_is_known);
  RUN_UNLESS_SECURE(far_behind_nothing_is_cut_again);
  RUN_UNLESS_SECURE(a_thread_that_frees_at_once_comes_to_the_end);
  RUN_UNLESS_SECURE(empty_newest_cell_starts_again);
  RUN_UNLESS_SECURE(large_block_after_an_empty_cell);
  RUN_UNLESS_SECURE(restart_forgets);
  RUN_UNLESS_SECURE(dead_oldest_cells_are_given_back);
  RUN_UNLESS_SECURE(half_dead_cells_go_on);
  RUN_UNLESS_SECURE(more_than_half_dead_go_on_in_slabs);
  RUN_UNLESS_SECURE(young_epochs_keep_cells);
  RUN_UNLESS_SECURE(a_limit_makes_cells_smaller);
  RUN_UNLESS_SECURE(a_limit_leaves_cells_that_hold_the_block);
  RUN_UNLESS_SECURE(who_frees_most_goes_on_in_slabs);
  RUN_UNLESS_SECURE(who_keeps_a_third_stays_in_cells);
  RUN_UNLESS_SECURE(a_ninth_part_of_a_thread_stays_in_cells);
  RUN_UNLESS_SECURE(large_epochs_go_on_in_slabs);
  RUN_UNLESS_SECURE(a_mib_is_the_end_of_cells);
  RUN_UNLESS_SECURE(aligned_cuts);
  RUN_UNLESS_SECURE(aligned_cut_opens_a_cell);
  RUN_UNLESS_SECURE(aligned_cut_after_an_empty_cell);
  RUN(home_heaps_are_not_mixed);
  RUN_UNLESS_SECURE(retired_cells_keep_their_counts);
  RUN_UNLESS_SECURE(random_operations);
  return test_status();
}
