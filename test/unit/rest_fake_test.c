#include "heap/rest.h"

#include "blocks.h"
#include "state.h"
#include "state/bin.h"
#include "takes.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// A thread that went on to other sizes does not hold on to slabs that could be empty.
static void resting_classes_give_back(void) {
  open_heaps();
  unsigned class = takes_class(512);
  alloc_many(512, 1000);
  free_many();
  CHECK(blocks_on_bin(heap, class) > 1);
  for (int i = 0; i < 3000; i++) {
    alloc_many(20000, 20);
    free_many();
  }
  CHECK_EQ(blocks_on_bin(heap, class), 0);
  CHECK(heap->store->stocks[class].slabs == NULL);
  state_check();
}

static void laid_down_heaps_have_no_hot_blocks(void) {
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
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

// H3: a slab that was full has room again.
static void laid_down_blocks_can_be_taken_again(void) {
  open_heaps();
  struct tsl_heap *part = blocks_take_part(heap);
  unsigned class = takes_class(512);
  tsl_heap_current = part;
  alloc_many(512, tsl_sizeclasses[class].capacity);
  const struct tsl_stock *stock = &part->store->stocks[class];
  CHECK(stock->slabs == NULL);
  tsl_fast_free(blocks[0]);
  tsl_heap_current = heap;
  tsl_heap_lay_down(part);
  CHECK(stock->slabs == tsl_slab_position(class, blocks[0]).slab);
}

int main(void) {
  RUN_UNLESS_SECURE(resting_classes_give_back);
  RUN(laid_down_heaps_have_no_hot_blocks);
  RUN(laid_down_blocks_can_be_taken_again);
  return test_status();
}
