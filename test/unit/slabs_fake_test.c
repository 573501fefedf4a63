#include "heap/slabs.h"

#include "blocks.h"
#include "heap/remote.h"
#include "state.h"
#include "takes.h"
#include "upkeep/collect.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static void emptied_slabs_are_cached(void) {
  open_heaps();
  tsl_options.cache_units = 5;
  alloc_many(1024, 64 * 12);
  CHECK_GE(state_owned_units(), 12);
  free_many();
  CHECK_EQ(heap->home->unit_count, 5);
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
  CHECK_EQ(heap->home->unit_count, 0);
  CHECK_GE(tsl_units_free(), free + 4 * 4);
  state_check();
}

static void remote_frees_come_back(void) {
  open_heaps();
  alloc_many(200, 3000);
  size_t owned = state_owned_units();
  for (int round = 0; round < 4; round++) {
    free_many_as(other);
    state_check();
    alloc_many(200, 3000);
    state_check();
  }
  CHECK_LE(state_owned_units(), owned + 4);
  free_many_as(other);
  act_as(other, tsl_home_collect);
  tsl_home_collect(heap->home);
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

// The owner had the block back in its slab before it saw the other free.
static void a_block_that_two_threads_freed_is_reported(void) {
  open_heaps();
  void *block = alloc(1024);
  alloc_many(1024, 3);
  struct tsl_position position = tsl_slab_position(takes_class(1024), block);
  CHECK(position.index >= 0);
  uint64_t bit = UINT64_C(1) << (unsigned)position.index % 64;
  tsl_remote_put(heap->number, takes_class(1024), block);
  CHECK(tsl_slab_put(position.slab, (unsigned)position.index));
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  const char *said = capture_end();
  CHECK(strstr(said, "freed by two threads") != NULL);
  CHECK((position.slab->free[position.index / 64] & bit) != 0);
}

// A part's store is opened by its first slab, and belongs to that part.
// Each heap knows all its slabs, with room or without; and the slabs know their epoch.
static void slabs_are_listed(void) {
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
  alloc_many(1024, 64 * 3);
  CHECK_GE(heap->slab_count, 3);
  tsl_heap_current = part;
  unsigned first = block_count;
  alloc_many(1024, 64 * 5);
  CHECK_GE(part->slab_count, 5);
  alloc_many(30000, 3);
  uint32_t count = 0;
  for (tsl_unit unit = part->slabs; unit != 0; unit = tsl_span_at(unit)->next, count++)
    CHECK_EQ(tsl_span_at(unit)->epoch, part->epoch);
  CHECK_EQ(count, part->slab_count);
  state_check();
  for (unsigned i = first; i < block_count; i += 3) tsl_fast_free(blocks[i]);
  for (unsigned i = first; i < block_count; i++) {
    if ((i - first) % 3 != 0) tsl_fast_free(blocks[i]);
  }
  state_check();
  blocks_collect_part(part);
  CHECK_EQ(part->slab_count, 0);
  CHECK_EQ(part->slabs, 0);
  CHECK_EQ(tsl_epoch_at(part->epoch)->held_bytes, 0);
  state_check();
}

// PA1: the stack of the life that ends is collected, that of the next one is open.
static void lives_of_the_ready_stack(void) {
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
  tsl_heap_current = part;
  alloc_many(1024, 64 * 2);
  uint32_t life = part->life;
  tsl_heap_current = other;
  tsl_fast_free(blocks[0]);
  tsl_fast_free(blocks[100]);
  CHECK((uint32_t)part->ready != 0);
  CHECK_EQ(part->ready >> 32, life);
  tsl_part_of(part)->sealing = TSL_PART_SEALING;
  tsl_heap_close_ready(part);
  CHECK_EQ(part->life, life + 1);
  CHECK_EQ(part->ready, (uint64_t)(life + 1) << 32);
  struct tsl_slab *slab = tsl_slab_position(takes_class(1024), blocks[0]).slab;
  CHECK_EQ(slab->remote_summary, 0);
  CHECK_EQ(slab->life, life);
  struct tsl_slab *late = tsl_slab_position(takes_class(1024), blocks[100]).slab;
  CHECK_EQ(late->remote_summary, 0);
  tsl_fast_free(blocks[1]);
  CHECK_EQ((uint32_t)part->ready, 0);
  CHECK_EQ(slab->left, -1);
}

// The limit of its epoch refuses a slab; what the heap has already goes on.
static void limits_refuse_slabs(void) {
  tslab_epoch id;
  tslab_epoch_options options = {.first_cell_bytes = TSLAB_NO_CELLS,
                                 .hard_limit_bytes = TSL_UNIT_BYTES};
  open_heaps();
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  struct tsl_heap *part = &tsl_part_take(heap->home, tsl_epoch_slot(id))->heap;
  tsl_heap_current = part;
  unsigned capacity = tsl_sizeclasses[takes_class(512)].capacity;
  alloc_many(512, capacity);
  CHECK_REFUSED(tsl_fast_malloc(512), ENOMEM);
  CHECK(part->refused);
  CHECK_REFUSED(tsl_fast_malloc(16), ENOMEM);
  CHECK_EQ(part->slab_count, 1);
  CHECK_EQ(tsl_epoch_at(part->epoch)->held_bytes, TSL_UNIT_BYTES);
  state_check();
  free_many();
  blocks_collect_part(part);
  CHECK(tsl_fast_malloc(16) != NULL);
  state_check();
}

// A refused commit takes nothing from the limit.
static void no_memory_for_a_slab_of_an_epoch(void) {
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
  os_fake_fail_all(OS_FAKE_COMMIT);
  tsl_heap_current = part;
  CHECK_REFUSED(tsl_fast_malloc(64), ENOMEM);
  CHECK(!part->refused);
  CHECK_EQ(tsl_epoch_at(part->epoch)->held_bytes, 0);
  CHECK_EQ(part->slab_count, 0);
  os_fake_recover();
  alloc(64);
  state_check();
}

int main(void) {
  RUN(emptied_slabs_are_cached);
  RUN_UNLESS_SECURE(large_slabs_go_to_the_segments);
  RUN(remote_frees_come_back);
  RUN(broken_heaps_are_found);
  RUN_UNLESS_SECURE(a_block_that_two_threads_freed_is_reported);
  RUN(slabs_are_listed);
  RUN(lives_of_the_ready_stack);
  RUN(limits_refuse_slabs);
  RUN(no_memory_for_a_slab_of_an_epoch);
  return test_status();
}
