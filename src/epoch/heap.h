// heap: one thread's part of one epoch. A thread's home heap is its part of the default epoch,
// which never closes.
//
// Per size class it has a bin (hot: the blocks freed last, linked through themselves) and a stock
// (cold: the rest of a word of free blocks, and the slabs with room).
//
//  H1  everything but `ready` belongs to the heap's thread; a pooled heap belongs to whoever popped
//      it
//  H2  a bin's links are self XOR next; the last one leads to tsl_bin_end, outside the region, so
//      that one comparison finds the end, the empty bin and a link that would leave the region
//  H3  length of a bin == its limit - room
//  H4  a slab is on its stock's list exactly when it is `listed`; every listed slab has a bit in
//      `free`
//  H5  heaps are never unmapped, and a number is one heap for ever: a late remote free always finds
//      a ready stack
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stack.h"
#include "slab/secure.h"
#include "slab/slab.h"

// An entry of the address map: heap number << 8 | code. The codes of slabs are twice their class,
// which is also a bin's place in words of 8 bytes.
enum { TSL_CODE_BITS = 8, TSL_CODES = 2 * TSL_CLASSES, TSL_CODE_LARGE = 0xfe };
_Static_assert(TSL_CODES < TSL_CODE_LARGE, "a code fits its bits");

enum { TSL_HEAP_UNITS = 64 };

struct tsl_bin {
  void *head;      // [owner] the block freed last
  uint32_t until;  // [owner] allocations until the next look at the counters
  int32_t room;    // [owner] frees until the bin is full
};

// A word's worth of free blocks: a run of neighbours that are handed out by adding, and the rest as
// bits. No block is touched before it is handed out.
struct tsl_stock {
  uintptr_t next;          // [owner] the run's first block
  uint32_t run;            // [owner] blocks left in the run
  uint32_t block_bytes;    // [const]
  uint64_t rest;           // [owner] bit i: the block i places behind the run's end is free
  struct tsl_slab *slabs;  // [owner] slabs with room
};

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

static inline uint32_t tsl_stock_blocks(const struct tsl_stock *stock) {
  return stock->run + tsl_bit_count(stock->rest);
}

enum tsl_heap_hold { TSL_HEAP_OWNED, TSL_HEAP_POOLED, TSL_HEAP_LOOKED_AT };

struct tsl_heap {
  // First, so that a bin's place is its distance from the heap's address.
  struct tsl_bin bins[TSL_CLASSES];

  uint32_t tag;           // [const] number << TSL_CODE_BITS
  uint32_t number;        // [const] 0 in the empty heap only
  size_t contained;       // [const] links below this stay in the region; 0 in the empty heap
  struct tsl_heap *home;  // [const] the home heap of the thread whose heap this is
  tsl_unit pending;       // [owner] slabs taken from `ready` and not looked at yet
  uint32_t pool_next;     // [remote] link while in the pool
  uint32_t hold;          // [remote] one of enum tsl_heap_hold
  uint32_t unit_count;    // [owner] a home heap's cache of empty units,
  uint32_t unit_low;      // [owner] and the least of it since the last tick
  uint32_t ticks;         // [owner] refills until the next look at what is not needed
  uint8_t inside;         // [owner, read after fork] the thread is in the middle of a change
  uint8_t torn;           // [owner] a fork took the thread, perhaps in the middle of a fast path
  struct tsl_stock stocks[TSL_CLASSES];
  uint64_t allocations[TSL_CLASSES];  // [owner] those before `until` was set, plus that number
  tsl_unit units[TSL_HEAP_UNITS];
  uint32_t rest_until[TSL_CLASSES];         // [owner] each bin's `until` when it was last looked at
  uint32_t rest_next;                       // [owner] the class to look at next
  void *quarantine[TSL_QUARANTINE_BLOCKS];  // [owner] secure build: blocks freed last, wiped
  uint32_t quarantine_next;                 // [owner]

  TSL_ON_LINE tsl_unit ready;  // [remote] slabs with remote bits
};

_Static_assert(sizeof(struct tsl_heap) <= TSL_HEAP_BYTES, "a heap fits its place");
_Static_assert(sizeof(struct tsl_bin) == TSL_BIN_BYTES, "a code times 8 is a bin's place");
_Static_assert(sizeof(struct tsl_stock) == 32, "a bin's place times 2 is its stock's");

// Where every bin's last link leads; reads as a link that is too large.
TSL_HIDDEN extern uintptr_t tsl_bin_end;

// The heap of threads that have none: all bins empty, no room, no tag that any entry has. Never
// written.
TSL_HIDDEN extern struct tsl_heap tsl_heap_empty;

TSL_HIDDEN extern TSL_TLS struct tsl_heap *tsl_heap_current;

TSL_ALWAYS_INLINE struct tsl_heap *tsl_heap_at(uint32_t number) {
  return (struct tsl_heap *)(tsl_region.heaps + (uintptr_t)number * TSL_HEAP_BYTES);
}

// A home heap for the calling thread: a pooled one, still warm, or a new one. NULL when memory is
// out.
TSL_HIDDEN struct tsl_heap *tsl_heap_take(void);

// Puts the heap of a thread that ends into the pool, with all its blocks.
TSL_HIDDEN void tsl_heap_pool(struct tsl_heap *heap);

// A block of a class whose stock has nothing left. NULL when memory is out. Owner only.
TSL_HIDDEN void *tsl_heap_refill(struct tsl_heap *heap, unsigned class);

// Puts a block of the heap back in its slab. Owner only.
TSL_HIDDEN void tsl_heap_put(struct tsl_heap *heap, unsigned class, void *block);

// Puts back a block of another thread's heap, or of one of this thread's that is neither current
// nor home.
TSL_HIDDEN void tsl_heap_put_remote(uint32_t number, unsigned class, void *block);

// Moves every hot block to its slab and looks at all that came back: empty slabs are given away.
// Owner only.
TSL_HIDDEN void tsl_heap_collect(struct tsl_heap *heap);

// Looks at what came back to one heap of the pool. Any thread; bounded.
TSL_HIDDEN void tsl_heap_look_at_pool(void);

// tsl_heap_collect for every heap that is in the pool. Any thread.
TSL_HIDDEN void tsl_heap_collect_pool(void);

// After fork, in the child: every heap but `mine` loses its thread; those inside a change are set
// aside for ever.
TSL_HIDDEN void tsl_heap_after_fork(struct tsl_heap *mine);

// Called when `until` has reached zero; returns `block`, so that it can be a tail call.
TSL_HIDDEN void *tsl_heap_recount(struct tsl_heap *heap, unsigned class, void *block);

TSL_HIDDEN bool tsl_heap_valid(const struct tsl_heap *heap);
