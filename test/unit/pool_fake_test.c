// What heap_fake_test.c is to home heaps, for those of declared epochs.
#include "base/options.h"
#include "blocks.h"
#include "epoch/heap.h"
#include "state.h"
#include "takes.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// A part of `home` in an epoch that was just opened; in slabs, so that it works in every build.
static struct tsl_heap *open_part(struct tsl_heap *home) {
  tslab_epoch id;
  tslab_epoch_options options = {.first_cell_bytes = TSLAB_NO_CELLS};
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  struct tsl_heap *part = tsl_heap_take_part(home, tsl_epoch_slot(id));
  CHECK(part != NULL);
  CHECK(part->home == home);
  CHECK_EQ(part->epoch, tsl_epoch_slot(id));
  CHECK_EQ(part->sealing, 0);
  return part;
}

static unsigned family_size(const struct tsl_heap *home) {
  unsigned size = 0;
  for (uint32_t at = home->family; at != 0; at = tsl_heap_at(at)->family) size++;
  return size;
}

static void new_parts_are_empty(void) {
  open_heaps();
  struct tsl_heap *first = open_part(heap), *second = open_part(heap), *third = open_part(other);
  CHECK_EQ(first->number, 3);
  CHECK_EQ(second->number, 4);
  CHECK_EQ(third->number, 5);
  CHECK_EQ(family_size(heap), 2);
  CHECK_EQ(family_size(other), 1);
  CHECK_EQ(first->tag, 3 << TSL_CODE_BITS);
  CHECK(!first->mixed && first->store == &tsl_store_empty);
  CHECK(first->cells == 0 && first->slabs == 0 && first->cell_end == 0);
  state_check();
}

static void parts_use_cells_when_their_epoch_does(void) {
  tslab_epoch id;
  tslab_epoch_options options = {0};
  open_heaps();
  struct tsl_heap *part = open_part(heap);
  CHECK(!part->mixed);
  tsl_heap_give_part(part);
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  CHECK(tsl_heap_take_part(heap, tsl_epoch_slot(id)) == part);
  CHECK(part->mixed);
}

// Its home's own, the last one first; and no other home's.
static void given_parts_are_taken_again(void) {
  open_heaps();
  struct tsl_heap *first = open_part(heap), *second = open_part(heap);
  tsl_heap_give_part(first);
  CHECK_EQ(first->sealing, TSL_HEAP_IS_SEALED);
  tsl_heap_give_part(second);
  CHECK_EQ(heap->returned, 0);
  state_check();
  CHECK_EQ(open_part(other)->number, 5);
  CHECK(open_part(heap) == second);
  CHECK(open_part(heap) == first);
  CHECK_EQ(heap->spare, 0);
  CHECK_EQ(open_part(heap)->number, 6);
  state_check();
}

// Those that other threads gave, when there are no others.
static void returned_parts_are_taken_again(void) {
  open_heaps();
  struct tsl_heap *parts[] = {open_part(heap), open_part(heap), open_part(heap)};
  tsl_heap_give_part(parts[0]);
  tsl_heap_current = other;
  tsl_heap_give_part(parts[1]);
  tsl_heap_give_part(parts[2]);
  CHECK_EQ(heap->returned, parts[2]->number);
  CHECK_EQ(other->spare, 0);
  tsl_heap_current = heap;
  state_check();
  CHECK(open_part(heap) == parts[0]);
  CHECK(heap->returned != 0);
  CHECK(open_part(heap) == parts[2]);
  CHECK_EQ(heap->returned, 0);
  CHECK(open_part(heap) == parts[1]);
  CHECK_EQ(open_part(heap)->number, 6);
  state_check();
}

static void no_part_without_memory(void) {
  open_heaps();
  struct tsl_heap *spare = open_part(heap);
  tsl_heap_give_part(spare);
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_heap_take_part(heap, 1) == spare);
  unsigned count = 1;
  while (tsl_heap_take_part(heap, 1) != NULL) count++;
  CHECK_EQ(family_size(heap), count);
  os_fake_recover();
  CHECK(tsl_heap_take_part(heap, 1) != NULL);
}

// A part's store is opened by its first slab, and belongs to that part.
// Each heap knows all its slabs, with room or without; and the slabs know their epoch.
static void slabs_are_listed(void) {
  open_heaps();
  struct tsl_heap *part = open_part(heap);
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
  tsl_heap_collect(part);
  CHECK_EQ(part->slab_count, 0);
  CHECK_EQ(part->slabs, 0);
  CHECK_EQ(tsl_epoch_at(part->epoch)->held_bytes, 0);
  state_check();
}

// What is freed from another epoch of the same thread goes back as from another thread.
static void frees_from_another_part(void) {
  open_heaps();
  struct tsl_heap *first = open_part(heap), *second = open_part(heap);
  tsl_heap_current = first;
  alloc_many(256, 1000);
  tsl_heap_current = second;
  free_many();
  CHECK((uint32_t)first->ready != 0);
  alloc_many(256, 10);
  tsl_heap_current = heap;
  free_many();
  CHECK((uint32_t)second->ready != 0);
  state_check();
  tsl_heap_current = first;
  tsl_heap_collect(first);
  CHECK_EQ(first->slab_count, 0);
  state_check();
}

// A thread inside an epoch that frees what it allocated outside uses its home's bins.
static void frees_of_the_home_from_a_part(void) {
  open_heaps();
  unsigned class = takes_class(64);
  alloc_many(64, 10);
  tsl_heap_current = open_part(heap);
  tsl_fast_free(blocks[5]);
  if (!TSL_SECURE) CHECK((void *)heap->bins[class].head == blocks[5]);
  CHECK_EQ((uint32_t)heap->ready, 0);
  CHECK(blocks_is_reported(blocks[5], "is free already"));
  state_check();
}

// H5: the stack of the life that ends is collected, that of the next one is open.
static void lives_of_the_ready_stack(void) {
  open_heaps();
  struct tsl_heap *part = open_part(heap);
  tsl_heap_current = part;
  alloc_many(1024, 64 * 2);
  uint32_t life = part->life;
  tsl_heap_current = other;
  tsl_fast_free(blocks[0]);
  tsl_fast_free(blocks[100]);
  CHECK((uint32_t)part->ready != 0);
  CHECK_EQ(part->ready >> 32, life);
  tsl_heap_close_ready(part);
  CHECK_EQ(part->life, life + 1);
  CHECK_EQ(part->ready, (uint64_t)(life + 1) << 32);
  struct tsl_slab *slab = tsl_slab_place(takes_class(1024), blocks[0]).slab;
  CHECK_EQ(slab->remote_summary, 0);
  CHECK_EQ(slab->life, life);
  struct tsl_slab *late = tsl_slab_place(takes_class(1024), blocks[100]).slab;
  CHECK_EQ(late->remote_summary, 0);
  tsl_fast_free(blocks[1]);
  CHECK_EQ((uint32_t)part->ready, 0);
  CHECK_EQ(slab->left, -1);
}

static void laid_down_heaps_have_no_hot_blocks(void) {
  open_heaps();
  struct tsl_heap *part = open_part(heap);
  unsigned class = takes_class(100);
  tsl_heap_current = part;
  alloc_many(100, 500);
  for (unsigned i = 0; i < 400; i++) tsl_fast_free(blocks[i]);
  if (!TSL_SECURE) CHECK_GE(tsl_heap_hot_blocks(part, class), 400);
  tsl_heap_current = heap;
  tsl_heap_lay_down(part);
  CHECK_EQ(tsl_heap_hot_blocks(part, class), 0);
  CHECK(part->bins[class].head == &tsl_bin_end);
  CHECK(part->store->stocks[class].slabs != NULL);
  size_t out = 0;
  for (tsl_unit unit = part->slabs; unit != 0; unit = tsl_span_at(unit)->next)
    out += tsl_slab_at(unit)->out;
  CHECK_EQ(out, 100);
  CHECK(tsl_heap_valid(part));
}

// The limit of its epoch refuses a slab; what the heap has already goes on.
static void limits_refuse_slabs(void) {
  tslab_epoch id;
  tslab_epoch_options options = {.first_cell_bytes = TSLAB_NO_CELLS,
                                 .hard_limit_bytes = TSL_UNIT_BYTES};
  open_heaps();
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  struct tsl_heap *part = tsl_heap_take_part(heap, tsl_epoch_slot(id));
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
  tsl_heap_collect(part);
  CHECK(tsl_fast_malloc(16) != NULL);
  state_check();
}

// A refused commit takes nothing from the limit.
static void no_memory_for_a_slab_of_an_epoch(void) {
  open_heaps();
  struct tsl_heap *part = open_part(heap);
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

// Pooled homes take their parts with them.
static void pooled_homes_keep_their_parts(void) {
  open_heaps();
  struct tsl_heap *part = open_part(heap);
  tsl_heap_give_part(part);
  tsl_heap_pool(heap);
  tsl_heap_current = other;
  CHECK(tsl_heap_take() == heap);
  tsl_heap_current = heap;
  CHECK(open_part(heap) == part);
  for (int i = 0; i < 10; i++) tsl_heap_look_at_pool();
  CHECK_EQ(part->hold, TSL_HEAP_OWNED);
  state_check();
}

int main(void) {
  RUN(new_parts_are_empty);
  RUN_UNLESS_SECURE(parts_use_cells_when_their_epoch_does);
  RUN(given_parts_are_taken_again);
  RUN(returned_parts_are_taken_again);
  RUN(no_part_without_memory);
  RUN(slabs_are_listed);
  RUN(frees_from_another_part);
  RUN(frees_of_the_home_from_a_part);
  RUN(lives_of_the_ready_stack);
  RUN(laid_down_heaps_have_no_hot_blocks);
  RUN(limits_refuse_slabs);
  RUN(no_memory_for_a_slab_of_an_epoch);
  RUN(pooled_homes_keep_their_parts);
  return test_status();
}
