#include "heap/part.h"

#include "blocks.h"
#include "epoch/open.h"
#include "state.h"
#include "state/history.h"
#include "takes.h"
#include "upkeep/collect.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static unsigned family_size(const struct tsl_heap *home) {
  unsigned size = 0;
  for (uint32_t at = home->home->family; at != 0; at = tsl_part_at(at)->family_next) size++;
  return size;
}

static void new_parts_are_empty(void) {
  open_heaps();
  struct tsl_heap *first = blocks_take_part(heap), *second = blocks_take_part(heap),
                  *third = blocks_take_part(other);
  CHECK_EQ(first->number, 3);
  CHECK_EQ(second->number, 4);
  CHECK_EQ(third->number, 5);
  CHECK_EQ(family_size(heap), 2);
  CHECK_EQ(family_size(other), 1);
  CHECK_EQ(first->tag, 3 << TSL_CODE_BITS);
  CHECK(!first->cell_class && first->store == &tsl_store_empty);
  CHECK(first->cells == 0 && first->slabs == 0 && first->cell_end == 0);
  state_check();
}

static void parts_use_cells_when_their_epoch_does(void) {
  tslab_epoch id;
  tslab_epoch_options options = {0};
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
  CHECK(!part->cell_class);
  tsl_part_give(tsl_part_of(part));
  CHECK_EQ(tsl_epoch_open(0, &options, &id), 0);
  CHECK(tsl_part_take(heap->home, tsl_epoch_slot(id)) == tsl_part_of(part));
  CHECK(part->cell_class);
}

static struct tsl_part *take_with(uint32_t label) {
  tslab_epoch id;
  tslab_epoch_options options = {0};
  CHECK_EQ(tsl_epoch_open(label, &options, &id), 0);
  return tsl_part_take(heap->home, tsl_epoch_slot(id));
}

static void give_by(struct tsl_heap *thread, struct tsl_part *part) {
  tsl_heap_current = thread;
  tsl_part_give(part);
  tsl_heap_current = heap;
}

// Seventeen of one label, once something is known of that label. What another thread gave back
// counts until the thread takes another part.
static void many_parts_of_a_label(void) {
  enum { MANY = 17, LABEL = 3, OTHER = 4 };
  struct tsl_part *parts[MANY];
  open_heaps();
  for (int i = 0; i < MANY; i++) {
    parts[i] = take_with(LABEL);
    CHECK(!tsl_part_has_many_like(parts[i]));
  }
  tsl_history_released(LABEL);
  tsl_history_released(OTHER);
  CHECK(tsl_part_has_many_like(parts[0]));
  CHECK(!tsl_part_has_many_like(take_with(OTHER)));
  give_by(heap, parts[MANY - 1]);
  CHECK(!tsl_part_has_many_like(parts[0]));
  CHECK(take_with(LABEL) == parts[MANY - 1]);
  CHECK(tsl_part_has_many_like(parts[0]));
  give_by(other, parts[MANY - 1]);
  give_by(other, parts[MANY - 2]);
  CHECK(tsl_part_has_many_like(parts[0]));
  CHECK(take_with(OTHER) == parts[MANY - 1]);
  CHECK(!tsl_part_has_many_like(parts[0]));
  CHECK(take_with(LABEL) == parts[MANY - 2]);
  CHECK(!tsl_part_has_many_like(parts[0]));
}

// Though the thread has a spare one of its own.
static void returned_parts_are_not_many(void) {
  enum { MANY = 18, LABEL = 3 };
  struct tsl_part *parts[MANY];
  open_heaps();
  tsl_history_released(LABEL);
  for (int i = 0; i < MANY; i++) parts[i] = take_with(LABEL);
  give_by(heap, parts[0]);
  for (int i = 1; i < MANY; i++) give_by(other, parts[i]);
  struct tsl_part *next = take_with(LABEL);
  CHECK(next == parts[1]);
  CHECK(!tsl_part_has_many_like(next));
  CHECK_EQ(heap->home->returned, 0);
  for (int i = 2; i < MANY; i++) CHECK(take_with(LABEL) == parts[i]);
  CHECK(take_with(LABEL) == parts[0]);
  CHECK_EQ(heap->home->spare, 0);
}

// 32 at a time, while there are more than a few. None is lost, nor is one that comes back then.
static void returned_parts_are_counted_a_few_at_a_time(void) {
  enum { MANY = 100, LABEL = 3, TAKEN = 4 };
  static const uint32_t left[TAKEN] = {MANY - 32 + 1, MANY - 64 + 2, MANY - 96 + 3, MANY - 96 + 4};
  struct tsl_part *parts[MANY];
  open_heaps();
  for (int i = 0; i < MANY; i++) parts[i] = take_with(LABEL);
  for (int i = 0; i < MANY; i++) give_by(other, parts[i]);
  const uint32_t *in_use = &heap->home->own->in_use[LABEL];
  CHECK_EQ(*in_use, MANY);
  for (int i = 0; i < TAKEN; i++) {
    struct tsl_part *part = take_with(LABEL);
    CHECK_EQ(*in_use, left[i]);
    if (i == 0) give_by(other, part);
  }
  uint32_t last = parts[MANY - 1]->heap.number;
  for (int i = TAKEN - 1; i < MANY; i++) CHECK(take_with(LABEL)->heap.number <= last);
  CHECK_EQ(*in_use, MANY);
  CHECK(take_with(LABEL)->heap.number > last);
}

static uint32_t share(struct tsl_heap *thread, uint32_t slot) {
  CHECK_EQ(tsl_part_find_shared(thread->home, slot), 0);
  tsl_heap_current = thread;
  struct tsl_part *part = tsl_part_take(thread->home, slot);
  tsl_part_share(part);
  return part->heap.number;
}

// More of them than a home has places to begin at; the other thread has one of its own in each
// third epoch.
static void shared_parts_are_found_by_slot(void) {
  enum { PARTS = 3 * TSL_HOME_SHARED_PLACES };
  uint32_t slots[PARTS], mine[PARTS], others[PARTS] = {0};
  open_heaps();
  for (uint32_t i = 0; i < PARTS; i++) {
    tslab_epoch id;
    CHECK_EQ(tsl_epoch_open_shared(0, &id), 0);
    slots[i] = tsl_epoch_slot(id);
    mine[i] = share(heap, slots[i]);
    if (i % 3 == 0) others[i] = share(other, slots[i]);
  }
  for (uint32_t i = 0; i < PARTS; i++) {
    CHECK_EQ(tsl_part_find_shared(heap->home, slots[i]), mine[i]);
    CHECK_EQ(tsl_part_find_shared(other->home, slots[i]), others[i]);
  }
  CHECK(tsl_home_valid(heap->home) && tsl_home_valid(other->home));
}

// Its home's own, the last one first; and no other home's.
static void given_parts_are_taken_again(void) {
  open_heaps();
  struct tsl_heap *first = blocks_take_part(heap), *second = blocks_take_part(heap);
  tsl_part_give(tsl_part_of(first));
  CHECK_EQ(tsl_part_of(first)->sealing, TSL_PART_SEALED);
  tsl_part_give(tsl_part_of(second));
  CHECK_EQ(heap->home->returned, 0);
  state_check();
  CHECK_EQ(blocks_take_part(other)->number, 5);
  CHECK(blocks_take_part(heap) == second);
  CHECK(blocks_take_part(heap) == first);
  CHECK_EQ(heap->home->spare, 0);
  CHECK_EQ(blocks_take_part(heap)->number, 6);
  state_check();
}

// Those that other threads gave, when there are no others.
static void returned_parts_are_taken_again(void) {
  open_heaps();
  struct tsl_heap *parts[] = {blocks_take_part(heap), blocks_take_part(heap),
                              blocks_take_part(heap)};
  tsl_part_give(tsl_part_of(parts[0]));
  tsl_heap_current = other;
  tsl_part_give(tsl_part_of(parts[1]));
  tsl_part_give(tsl_part_of(parts[2]));
  CHECK_EQ(heap->home->returned, parts[2]->number);
  CHECK_EQ(other->home->spare, 0);
  tsl_heap_current = heap;
  state_check();
  CHECK(blocks_take_part(heap) == parts[0]);
  CHECK(heap->home->returned != 0);
  CHECK(blocks_take_part(heap) == parts[1]);
  CHECK_EQ(heap->home->returned, 0);
  CHECK(blocks_take_part(heap) == parts[2]);
  CHECK_EQ(blocks_take_part(heap)->number, 6);
  state_check();
}

static void no_part_without_memory(void) {
  open_heaps();
  struct tsl_heap *spare = blocks_take_part(heap);
  tsl_part_give(tsl_part_of(spare));
  os_fake_fail_all(OS_FAKE_COMMIT);
  CHECK(tsl_part_take(heap->home, 1) == tsl_part_of(spare));
  unsigned count = 1;
  while (tsl_part_take(heap->home, 1) != NULL) count++;
  CHECK_EQ(family_size(heap), count);
  os_fake_recover();
  CHECK(tsl_part_take(heap->home, 1) != NULL);
}

// What is freed from another epoch of the same thread goes back as it does inside; in the secure
// build as from another thread.
static void frees_from_another_part(void) {
  open_heaps();
  struct tsl_heap *first = blocks_take_part(heap), *second = blocks_take_part(heap);
  tsl_heap_current = first;
  alloc_many(256, 1000);
  tsl_heap_current = second;
  free_many();
  CHECK_EQ((uint32_t)first->ready != 0, TSL_SECURE);
  alloc_many(256, 10);
  tsl_heap_current = heap;
  free_many();
  CHECK_EQ((uint32_t)second->ready != 0, TSL_SECURE);
  state_check();
  tsl_heap_current = first;
  blocks_collect_part(first);
  CHECK_EQ(first->slab_count, 0);
  state_check();
}

// A thread inside an epoch that frees what it allocated outside uses its home's bins.
static void frees_of_the_home_from_a_part(void) {
  open_heaps();
  unsigned class = takes_class(64);
  alloc_many(64, 10);
  tsl_heap_current = blocks_take_part(heap);
  tsl_fast_free(blocks[5]);
  if (!TSL_SECURE) CHECK((void *)heap->bins[class].head == blocks[5]);
  CHECK_EQ((uint32_t)heap->ready, 0);
  CHECK(blocks_is_reported(blocks[5], "is free already"));
  state_check();
}

// PA3
static void a_part_with_contents_is_not_empty(void) {
  open_heaps();
  struct tsl_part *part = tsl_part_of(blocks_take_part(heap));
  CHECK(tsl_part_is_empty(part));
  tsl_heap_current = &part->heap;
  alloc_many(64, 1);
  CHECK(!tsl_part_is_empty(part));
  free_many();
  blocks_collect_part(&part->heap);
  CHECK_EQ(part->heap.slab_count, 0);
  CHECK(!tsl_part_is_empty(part));
  part->heap.store = &tsl_store_empty;
  CHECK(tsl_part_is_empty(part));
  part->heap.cells = 1;
  CHECK(!tsl_part_is_empty(part));
}

// HO1, HO3
static void a_home_that_is_not_one_is_found(void) {
  open_heaps();
  struct tsl_home *home = heap->home;
  struct tsl_heap *part = blocks_take_part(heap);
  CHECK(tsl_home_valid(home) && tsl_home_valid(other->home));
  heap->life = 1;
  CHECK(!tsl_home_valid(home));
  heap->life = 0;
  heap->epoch = 1;
  CHECK(!tsl_home_valid(home));
  heap->epoch = 0;
  home->own = other->home->own;
  CHECK(!tsl_home_valid(home));
  home->own = (struct tsl_home_store *)heap->store;
  part->home = other->home;
  CHECK(!tsl_home_valid(home));
  part->home = home;
  CHECK(tsl_home_valid(home));
}

int main(void) {
  RUN(new_parts_are_empty);
  RUN_UNLESS_SECURE(parts_use_cells_when_their_epoch_does);
  RUN(shared_parts_are_found_by_slot);
  RUN(many_parts_of_a_label);
  RUN(returned_parts_are_not_many);
  RUN(returned_parts_are_counted_a_few_at_a_time);
  RUN(given_parts_are_taken_again);
  RUN(returned_parts_are_taken_again);
  RUN(no_part_without_memory);
  RUN(frees_from_another_part);
  RUN(frees_of_the_home_from_a_part);
  RUN(a_part_with_contents_is_not_empty);
  RUN(a_home_that_is_not_one_is_found);
  return test_status();
}
