// bin: the blocks of one size class that a heap freed last, linked through themselves. A block on a
// bin carries a mark in its first word and its link in the second.
//
//  B1  a link is self XOR next; the last one leads to tsl_bin_end, outside the region, so that one
//      comparison finds the end, the empty bin and a link that would leave the region
//  B2  the mark is the heap's address. Taking the block off takes it: a block that is on a bin
//      twice, or that somebody wrote to, does not come off it a second time
//  B3  who frees a block reads nothing of it, because a cold one would be waited for. A link of
//      zero says that it is the head already
//  B4  the secure build has no bins and no marks: what is free is zero there
//  B5  length of a bin == its limit - room - the allocations since `seen` was taken (heap.h)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "slab/sizeclass.h"

struct tsl_heap;

struct tsl_free_block {
  uintptr_t mark;
  uintptr_t link;
};

struct tsl_bin {
  struct tsl_free_block *head;  // [owner] the block freed last
  uint32_t until;               // [owner] allocations before the one that looks at the counters
  int32_t room;                 // [owner] frees until the next look at how long it is
};

_Static_assert(sizeof(struct tsl_bin) == TSL_BIN_BYTES, "a code times 8 is a bin's place");

// Where every bin's last link leads; its own link is too large.
TSL_HIDDEN extern struct tsl_free_block tsl_bin_end;

// Blocks of a class that a bin holds at most.
TSL_HIDDEN unsigned tsl_bin_limit(unsigned class);

// An empty bin whose owner looks at the counters at so many allocations.
TSL_HIDDEN struct tsl_bin tsl_bin_new(unsigned class, uint32_t until);

// Allocations until the next look at the counters; 0: it is due.
TSL_ALWAYS_INLINE uint32_t tsl_bin_until(const struct tsl_bin *bin) { return bin->until + 1; }

// Whether a bin is empty, or has no more than its last block, which stays there until the stock has
// none. Otherwise its head is the next block, or was written to.
TSL_ALWAYS_INLINE bool tsl_bin_ends(const struct tsl_heap *heap, const struct tsl_bin *bin) {
  const struct tsl_free_block *end = &tsl_bin_end, *head = bin->head;
  bool is_last = (head->link ^ (uintptr_t)head) == (uintptr_t)end;
  return head == end || (is_last && head->mark == (uintptr_t)heap);
}

// The number of blocks on a bin. A moment's value.
TSL_HIDDEN uint32_t tsl_bin_length(const struct tsl_heap *heap, unsigned class);

// The rest is the owner's, or that of who acts for it.

// Puts a block on the bin. False when it is full: then nothing of it was touched.
TSL_HIDDEN bool tsl_bin_push(struct tsl_heap *heap, unsigned class, void *block);

// Takes the block that was freed last off the bin; NULL when it is empty.
TSL_HIDDEN void *tsl_bin_pop(struct tsl_heap *heap, unsigned class);

// Reports a head that was written to or freed twice, and gives it up, with all that follows when
// its link is lost. Afterwards the head is whole or the bin empty.
TSL_HIDDEN void tsl_bin_check(struct tsl_heap *heap, unsigned class);

// The same for each bin, and reports a head that was never handed out. Who opens a slab calls it:
// what a program did to a block of a size that it does not ask for any more is found as well.
TSL_HIDDEN void tsl_bin_check_all(struct tsl_heap *heap);

// Makes a bin whole that a fork took from its thread: it holds what can be followed, or nothing.
TSL_HIDDEN void tsl_bin_mend(struct tsl_heap *heap, unsigned class);

TSL_HIDDEN bool tsl_bin_valid(const struct tsl_heap *heap, unsigned class);
