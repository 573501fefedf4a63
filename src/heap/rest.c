#include "heap/rest.h"

#include "heap/freed.h"
#include "heap/part.h"
#include "heap/remote.h"
#include "state/bin.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "state/quarantine.h"

enum {
  REST_LOOKS = 8,    // classes that one look considers
  REST_BLOCKS = 64,  // and blocks that it gives back
};

// Forgets the point behind the stock's blocks, because these are not handed out: the next handful
// draws anew. The point is forgotten even when the stock is empty and its block would be next:
// otherwise the chance of a point would depend on where it lies.
static void stock_forget_point(struct tsl_heap *heap, unsigned class) {
  heap->store->sampled_cold &= ~(UINT64_C(1) << class % 64);
}

void tsl_heap_drain_stock(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  stock_forget_point(heap, class);
  while (stock->run != 0 || tsl_stock_run(stock)) {
    void *block = tsl_stock_pop(stock);
    heap->store->allocations[class]--;
    tsl_heap_tally(heap, class)->rested++;
    tsl_heap_put_plainly(heap, class, block);
  }
}

// The store may go with the last block.
void tsl_heap_drain_stocks(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  for (unsigned class = 0; class < TSL_CLASSES && tsl_heap_has_store(heap); class += 1)
    tsl_heap_drain_stock(heap, class);
}

// Gives some blocks of a class back that nobody allocated from since the last look, and its
// stock. False when it was needed, or has none.
static bool class_rest(struct tsl_heap *heap, unsigned class) {
  uint32_t *seen = &heap->store->rest.totals[class];
  uint32_t total = (uint32_t)heap->store->allocations[class] - tsl_bin_ahead(&heap->bins[class]);
  bool idle = total == *seen;
  *seen = total;
  if (!idle) return false;
  stock_forget_point(heap, class);
  if (heap->bins[class].head == &tsl_bin_end && heap->store->stocks[class].run == 0) return false;
  tsl_heap_drain_bin(heap, class, REST_BLOCKS);
  tsl_heap_drain_stock(heap, class);
  return true;
}

void tsl_heap_rest(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  bool is_home = tsl_heap_is_home(heap);
  for (unsigned looks = 0; looks < REST_LOOKS; looks++) {
    unsigned class = heap->store->rest.next++ % TSL_BINS;
    if (is_home && class < TSL_GATHERS) tsl_remote_send(heap->home, class);
    if (class_rest(heap, class)) return;
  }
}

static void bins_rest(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS && tsl_heap_has_store(heap); class += 1) {
    tsl_heap_drain_bin(heap, class, UINT32_MAX);
    tsl_heap_drain_stock(heap, class);
  }
}

static void rest_all(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  for (void *block; (block = tsl_quarantine_take(heap)) != NULL;)
    tsl_heap_end_quarantine(heap, block);
  if (tsl_heap_is_home(heap)) tsl_remote_send_all(heap->home);
  bins_rest(heap);
}

// Each block that is taken changes the sum, by its bin's count or its stock's run; a free does not.
// What is in the quarantine stays there.
void tsl_heap_rest_unused(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  uint32_t sum = 0, before = heap->store->rest.sum;
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    sum += heap->bins[class].until + heap->store->stocks[class].run;
  heap->store->rest.sum = sum;
  if (sum == before) bins_rest(heap);
}

void tsl_home_rest_all(struct tsl_home *home) {
  rest_all(&home->heap);
  tsl_part_visit_shared(home, rest_all);
}

// H2: moves a block to its slab's bit. The slab stays even when it is empty.
static void block_lay_down(struct tsl_heap *heap, unsigned class, void *block) {
  struct tsl_position position = tsl_slab_position(class, block);
  if (position.index < 0) return tsl_misuse_interior(block);
  if (!tsl_slab_put(position.slab, (unsigned)position.index)) return tsl_misuse_twice(block);
  tsl_heap_tally(heap, class)->out--;
  if (!position.slab->listed) tsl_stock_list(&heap->store->stocks[class], position.slab);
}

static void bin_lay_down(struct tsl_heap *heap, unsigned class) {
  for (void *block; (block = tsl_bin_pop(heap, class)) != NULL;) {
    tsl_heap_tally(heap, class)->rested++;
    block_lay_down(heap, class, block);
  }
}

// A stock's blocks are of one word.
static void stock_lay_down(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  stock_forget_point(heap, class);
  if (stock->run == 0 && !tsl_stock_run(stock)) return;
  struct tsl_tally *tally = tsl_heap_tally(heap, class);
  uint32_t count = tsl_stock_blocks(stock);
  struct tsl_position position = tsl_slab_position(class, (const void *)stock->next);
  unsigned word = (unsigned)position.index / 64, bit = (unsigned)position.index % 64;
  uint64_t rest = stock->run == 64 ? 0 : stock->rest << stock->run;
  tsl_slab_put_word(position.slab, word, (tsl_low_bits(stock->run) | rest) << bit);
  stock->run = 0;
  stock->rest = 0;
  heap->store->allocations[class] -= count;
  tally->rested += count;
  tally->out -= count;
  if (!position.slab->listed) tsl_stock_list(stock, position.slab);
}

void tsl_heap_lay_down(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  for (void *block; (block = tsl_quarantine_take(heap)) != NULL;)
    block_lay_down(heap, tsl_class_around(block), block);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    bin_lay_down(heap, class);
    stock_lay_down(heap, class);
  }
}
