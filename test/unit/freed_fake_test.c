#include "heap/freed.h"

#include "blocks.h"
#include "heap/rest.h"
#include "state.h"
#include "state/bin.h"
#include "takes.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// B5: what a full bin does not take becomes bits of the slab.
static void full_bins(void) {
  static const size_t sizes[] = {1, 64, 1000, 5000, 32768};
  open_heaps();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned class = takes_class(sizes[i]);
    unsigned limit = tsl_bin_limit(heap, class);
    alloc_many(sizes[i], 2 * limit);
    state_check();
    free_many();
    CHECK_EQ(blocks_on_bin(heap, class), limit);
    CHECK_EQ(heap->bins[class].room, 0);
    state_check();
    alloc_many(sizes[i], 2 * limit);
    CHECK_EQ(blocks_on_bin(heap, class), 1);
    state_check();
    block_count = 0;
  }
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

// A slab without free blocks takes one back: the tally counts it at once, and tells of it in turn.
static void full_slabs_take_blocks_back(void) {
  open_heaps();
  unsigned class = takes_class(64), capacity = tsl_sizeclasses[class].capacity;
  alloc_many(64, 3 * capacity);
  const struct tsl_tally *tally = tsl_heap_tally(heap, class);
  const struct tsl_slab *slab = tsl_slab_at(tsl_unit_of(blocks[0]));
  unsigned limit = tsl_bin_limit(heap, class);
  for (unsigned i = 0; i < limit; i++) tsl_fast_free(blocks[--block_count]);
  CHECK_EQ(slab->summary, 0);
  uint32_t out = tsl_tally_out(tally), untold = tally->untold, in_slab = slab->out;
  tsl_fast_free(blocks[0]);
  CHECK_NE(slab->summary, 0);
  CHECK_EQ(slab->out, in_slab - 1);
  CHECK_EQ(tsl_tally_out(tally), out - 1);
  CHECK_EQ(tally->untold, untold - 1);
  blocks[0] = blocks[--block_count];
  state_check();
}

// HO2
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
  tsl_home_rest_all(other->home);
  CHECK(tsl_heap_valid(other));
  CHECK_EQ(tsl_map_lookup(alloc(3000)) >> TSL_CODE_BITS, other->number);
  tsl_heap_current = heap;
  tsl_heap_look_at_ready(heap, 1);
  CHECK_EQ(tsl_slab_at(tsl_unit_of(block))->out, out - 2);
  state_check();
}

static void as_many_as_a_bin_holds(void) {
  open_heaps();
  alloc_many(3000, 100);
  unsigned class = takes_class(3000), most = tsl_bin_limit(other, class);
  CHECK(most < 100);
  free_many_as(other);
  CHECK_EQ(other->bins[class].room, 0);
  CHECK(tsl_heap_valid(other));
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  CHECK_EQ(blocks_on_bin(heap, class), 0);
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

int main(void) {
  RUN_UNLESS_SECURE(full_bins);
  RUN_UNLESS_SECURE(full_slabs_take_blocks_back);
  RUN(freed_blocks_are_used_again);
  RUN_UNLESS_SECURE(medium_blocks_stay_with_who_frees_them);
  RUN_UNLESS_SECURE(as_many_as_a_bin_holds);
  RUN(small_blocks_go_home);
  RUN(double_frees_are_reported);
  RUN(interior_pointers_are_reported);
  RUN_UNLESS_SECURE(broken_links_are_reported);
  return test_status();
}
