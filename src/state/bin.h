// bin: the blocks of one size class that a heap freed last, linked through themselves. A block on a
// bin carries a mark in its first word and its link in the second.
//
//  B1  a link is self XOR next; the last one leads to tsl_bin_end, outside the region, so that one
//      comparison finds the end, the empty bin and a link that would leave the region
//  B2  the mark is the heap's address. Taking the block off takes it: a block that is on a bin
//      twice, or that somebody wrote to, does not come off it a second time
//  B3  a free reads nothing of the block, because a read of a cold line would stall it. The new
//      link is 0 when the block is the head already: a double free
//  B4  the secure build has no bins and no marks: what is free is zero there
//  B5  length of a bin == its limit - room - the allocations since `seen` was taken (heap.h)
//  B6  length <= limit <= its `most` <= tsl_bin_longest. A refill makes the limit `most` again.
//      `most` doubles at the refill after frees met the full bin, and when a count of the room
//      finds half of it free and the limit is `most`: up to tsl_bin_usual. In a home, and in a
//      part of a shared epoch, it may become up to twice that at the refill after few frees met
//      the full bin: such a bin, with the stock, holds TSL_TALLY_BEHIND_BYTES at most
#pragma once

#include "state/heap.h"

// The largest limit that a bin of the class can have, the one that most come to, and the one that
// it has in a young heap.
TSL_HIDDEN unsigned tsl_bin_longest(unsigned class);
TSL_HIDDEN unsigned tsl_bin_usual(unsigned class);
TSL_HIDDEN struct tsl_bin_limit tsl_bin_limit_new(const struct tsl_heap *heap, unsigned class);

// Blocks that the bin holds at most now; 0 without a store. A moment's value.
TSL_HIDDEN unsigned tsl_bin_limit(const struct tsl_heap *heap, unsigned class);

// An empty bin whose owner looks at the counters after `until` allocations.
TSL_HIDDEN struct tsl_bin tsl_bin_new(unsigned class, uint32_t until);

// Allocations that are counted ahead: the next look at the counters comes after them. 0: it is due.
TSL_ALWAYS_INLINE uint32_t tsl_bin_ahead(const struct tsl_bin *bin) { return bin->until + 1; }

// True when the bin is empty, or has only its last block, which stays there until the stock is
// empty. False: the head can be taken, or it was written to.
TSL_ALWAYS_INLINE bool tsl_bin_ends(const struct tsl_heap *heap, const struct tsl_bin *bin) {
  const struct tsl_free_block *end = &tsl_bin_end, *head = bin->head;
  bool is_last = (head->link ^ (uintptr_t)head) == (uintptr_t)end;
  return head == end || (is_last && head->mark == (uintptr_t)heap);
}

// The number of blocks on a bin. A moment's value.
TSL_HIDDEN uint32_t tsl_bin_length(const struct tsl_heap *heap, unsigned class);

// Blocks of a class that are out of their slabs, but free: on the bin, in the stock or in the
// quarantine. A moment's value.
TSL_HIDDEN size_t tsl_heap_hot_blocks(const struct tsl_heap *heap, unsigned class);

// The rest is the owner's, or that of who acts for it.

// Puts a block on the bin, whose limit may rise. False when it is full: then nothing of it was
// touched.
TSL_HIDDEN bool tsl_bin_push(struct tsl_heap *heap, unsigned class, void *block);

// Takes the block that was freed last off the bin; NULL when it is empty.
TSL_HIDDEN void *tsl_bin_pop(struct tsl_heap *heap, unsigned class);

// The same for an allocation, which leaves the last block where it is. `*is_due`: the allocation is
// the one that looks at the counters.
TSL_HIDDEN void *tsl_bin_take(struct tsl_heap *heap, unsigned class, bool *is_due);

// So many frees met the full bin. Returns how many of its blocks should go back to their slabs:
// none before the thread has freed 1 MiB of the class so without an allocation in between.
TSL_HIDDEN unsigned tsl_bin_passed(struct tsl_heap *heap, unsigned class, uint32_t frees);

// Lowers the limit by so many blocks, or by the bin's room if that is less.
TSL_HIDDEN void tsl_bin_shorten(struct tsl_heap *heap, unsigned class, unsigned blocks);

// The bin of a heap with a store has run empty: its limit is `most` again, which doubles if frees
// met a full bin since the last time.
TSL_HIDDEN void tsl_bin_refilled(struct tsl_heap *heap, unsigned class);

// Reports a head that was written to or freed twice, and drops it; when its link is damaged, with
// all blocks behind it. Afterwards the head is whole or the bin is empty.
TSL_HIDDEN void tsl_bin_check(struct tsl_heap *heap, unsigned class);

// The same for each bin; also reports a head that was never handed out. Called when the heap opens
// one of its thread's first slabs, and then one of so many: damage is also found in classes that
// the program no longer allocates from.
enum { TSL_FIRST_OPENINGS = 64, TSL_OPENINGS_A_CHECK = 16 };
TSL_HIDDEN void tsl_bin_check_all(struct tsl_heap *heap);

// Mends a bin whose thread a fork took: it keeps the blocks that can be followed to its end, or
// none.
TSL_HIDDEN void tsl_bin_mend(struct tsl_heap *heap, unsigned class);

TSL_HIDDEN bool tsl_bin_valid(const struct tsl_heap *heap, unsigned class);
