// stock: the cold half of what a heap has of one size class: the rest of a word of free blocks, and
// the slabs with room.
#pragma once

#include "slab/slab.h"

// Of a word's free blocks a run of neighbours is handed out by adding; the rest are bits. No block
// is touched before it is handed out.
struct tsl_stock {
  uintptr_t next;          // [owner] the run's first block
  uint32_t run;            // [owner] blocks left in the run
  uint32_t block_bytes;    // [const]
  uint64_t rest;           // [owner] bit i: the block i places behind the run's end is free
  struct tsl_slab *slabs;  // [owner] slabs with room
};

_Static_assert(sizeof(struct tsl_stock) == 32, "a bin's offset times 2 is its stock's");

// The run must not be empty.
TSL_ALWAYS_INLINE void *tsl_stock_pop(struct tsl_stock *stock) {
  uintptr_t block = stock->next;
  stock->run--;
  stock->next = block + stock->block_bytes;
  return (void *)block;
}

// Makes the next run out of `rest`; false when that is empty.
static inline bool tsl_stock_run(struct tsl_stock *stock) {
  if (stock->rest == 0) return false;
  unsigned gap = tsl_lowest_bit(stock->rest);
  uint64_t rest = stock->rest >> gap;
  stock->next += gap * (size_t)stock->block_bytes;
  stock->run = ~rest == 0 ? 64 : tsl_lowest_bit(~rest);
  stock->rest = stock->run == 64 ? 0 : rest >> stock->run;
  return true;
}

// Whether a block of the class is at hand.
static inline bool tsl_stock_has(const struct tsl_stock *stock, const void *block) {
  size_t index = ((uintptr_t)block - stock->next) / stock->block_bytes;
  if (index < stock->run) return true;
  return index - stock->run < 64 && (stock->rest >> (index - stock->run) & 1) != 0;
}

// Any thread: a moment's value. Most stocks have a run alone, or nothing.
static inline uint32_t tsl_stock_blocks(const struct tsl_stock *stock) {
  uint32_t run = tsl_load_relaxed(&stock->run);
  uint64_t rest = tsl_load_relaxed(&stock->rest);
  return tsl_likely(rest == 0) ? run : run + tsl_bit_count(rest);
}

static inline void tsl_stock_list(struct tsl_stock *stock, struct tsl_slab *slab) {
  slab->listed = true;
  slab->prev = NULL;
  slab->next = stock->slabs;
  if (stock->slabs != NULL) stock->slabs->prev = slab;
  stock->slabs = slab;
}

static inline void tsl_stock_unlist(struct tsl_stock *stock, struct tsl_slab *slab) {
  slab->listed = false;
  if (slab->next != NULL) slab->next->prev = slab->prev;
  if (slab->prev != NULL) {
    slab->prev->next = slab->next;
  } else {
    stock->slabs = slab->next;
  }
}

// Whether a block that is at hand is in no bit of its slab (H2).
static inline bool tsl_stock_next_valid(const struct tsl_stock *stock, unsigned class) {
  if (stock->run == 0) return true;
  struct tsl_position position = tsl_slab_position(class, (const void *)stock->next);
  return position.index >= 0 && position.slab->class == class && !tsl_slab_has(position);
}

static inline bool tsl_stock_valid(const struct tsl_stock *stock, unsigned class) {
  if (!tsl_stock_next_valid(stock, class)) return false;
  const struct tsl_slab *before = NULL;
  for (const struct tsl_slab *slab = stock->slabs; slab != NULL; before = slab, slab = slab->next) {
    if (slab->class != class || !slab->listed || slab->prev != before) return false;
    if (slab->summary == 0 || !tsl_slab_valid(slab)) return false;
  }
  return true;
}
