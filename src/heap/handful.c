#include "heap/handful.h"

#include "heap/count.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "heap/store.h"
#include "state/bin.h"
#include "state/change.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "state/quarantine.h"
#include "tell/heaps.h"
#include "tell/points.h"

enum { COLLECT_BUDGET = 4 };  // slabs that one handful looks at

// Takes the last block of a bin, which the fast path leaves there (bin.h), when nothing else is
// left.
static void *bin_take_last(struct tsl_heap *heap, unsigned class) {
  void *block = tsl_bin_pop(heap, class);
  if (block != NULL) heap->store->allocations[class]++;
  return block;
}

static void tally_refill(struct tsl_tally *tally, unsigned blocks) {
  tally->out += blocks;
  tally->refills++;
  tally->refilled += blocks;
}

// Whether the one block that the secure build takes also waits in the quarantine: then another
// thread freed it, too. It stays in the quarantine, out of its slab.
static bool is_quarantined(struct tsl_heap *heap, unsigned class, struct tsl_handful handful) {
  size_t offset = (size_t)tsl_lowest_bit(handful.blocks) * tsl_sizeclasses[class].bytes;
  const void *block = (const void *)(handful.base + offset);
  if (!tsl_quarantine_has(block)) return false;
  tsl_heap_tally(heap, class)->out++;
  tsl_misuse_both(block);
  return true;
}

static bool heap_refill_stock(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  tsl_heap_look_at_ready(heap, COLLECT_BUDGET);
  struct tsl_slab *slab = stock->slabs != NULL ? stock->slabs : tsl_heap_open_slab(heap, class);
  if (slab == NULL) return false;
  if (tsl_stock_blocks(stock) != 0)
    tsl_heap_drain_stock(heap, class);  // a limit's callback may have allocated here
  struct tsl_handful handful = tsl_slab_take(slab);
  if (slab->summary == 0) tsl_stock_unlist(stock, slab);
  if (TSL_SECURE && is_quarantined(heap, class, handful)) return heap_refill_stock(heap, class);
  stock->next = handful.base;
  stock->rest = handful.blocks;
  tally_refill(tsl_heap_tally(heap, class), tsl_bit_count(handful.blocks));
  return true;
}

// The handful's blocks count as allocated from here on; readers subtract what is left of it.
static void stock_count(struct tsl_heap *heap, unsigned class) {
  heap->store->allocations[class] += tsl_stock_blocks(&heap->store->stocks[class]);
}

// Keeps the first `most` blocks of a new handful, so that the next beyond it is the one to sample.
static void stock_cut(struct tsl_heap *heap, unsigned class, uint32_t most) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  uint64_t rest = stock->rest;
  for (; most != 0 && rest != 0; most--) rest &= rest - 1;
  if (rest == 0) return;
  struct tsl_position position = tsl_slab_position(class, (void *)stock->next);
  stock->rest &= ~rest;
  tsl_slab_put_word(position.slab, (unsigned)position.index / 64, rest);
  tsl_heap_tally(heap, class)->out -= tsl_bit_count(rest);
  tsl_heap_tally(heap, class)->refilled -= tsl_bit_count(rest);
  if (!position.slab->listed) tsl_stock_list(stock, position.slab);
  heap->store->sampled_cold |= UINT64_C(1) << class % 64;
}

// No point was drawn yet among what the bins allocate.
static void open_store(struct tsl_heap *heap) {
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_store_open(heap);
  tsl_change_end(change);
  if (tsl_points_are_on()) tsl_heap_redraw(heap);
}

void *tsl_heap_take_handful(struct tsl_heap *heap, unsigned class, uint32_t sampled) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!tsl_heap_has_store(heap)) open_store(heap);
  struct tsl_stock *stock = &heap->store->stocks[class];
  tsl_bin_check(heap, class);
  tsl_bin_refilled(heap, class);
  if (TSL_SECURE) tsl_quarantine_look(heap);
  struct tsl_change change = tsl_change_begin(heap->home);
  bool filled = heap_refill_stock(heap, class);
  if (filled && sampled > 1) stock_cut(heap, class, sampled - 1);
  if (filled) stock_count(heap, class);
  tsl_change_end(change);
  if (!filled) return bin_take_last(heap, class);
  tsl_report_bin(heap, class);
  tsl_stock_run(stock);
  return tsl_stock_pop(stock);
}

void *tsl_heap_pop_cold(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  if (stock->run != 0 || (stock->rest != 0 && tsl_stock_run(stock))) return tsl_stock_pop(stock);
  return tsl_heap_take_handful(heap, class, 0);
}

void *tsl_heap_pop_quietly(struct tsl_heap *heap, unsigned class) {
  bool is_due = false;
  void *block = tsl_bin_take(heap, class, &is_due);
  if (is_due) tsl_heap_count(heap, class);
  return block != NULL ? block : tsl_heap_pop_cold(heap, class);
}
