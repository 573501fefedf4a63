// slab: one or more units that hold blocks of one size class for one heap. Nothing of it lies in
// the units themselves.
//
// A free block is one bit: in `free` when its heap's thread freed it, in `remote` when somebody
// else did. Everything else is `out`: live, or among the hot blocks of the heap's bin.
//
//  S1  out + bits in free + bits in remote == capacity
//  S2  [owner] fields are the owner's alone; anyone may set a bit in `remote`
//  S3  bit w of `summary` is set exactly when free[w] != 0; words beyond the capacity mean nothing
//  S4  whoever sets the first bit of remote[w] sets bit w of `remote_summary`; whoever sets the
//      first bit of `remote_summary` pushes the slab on its heap's ready stack. The owner empties
//      words only of slabs that it took from that stack, and only words whose summary bit it took:
//      so a slab whose last block came back has no freer left that may still touch it.
//  S5  sealing fills `remote_summary` and every word of `remote` with ones. A later free finds its
//      bit set: it sets the bit in `free` instead, and decrements `left`. A free that was between
//      two steps of S4 at that moment only decrements `left`. Until then `left` may be below zero:
//      last, the sealer adds to it the blocks that are out, and one for each free that was between
//      two steps. Whoever brings `left` to zero gives the slab back, and nobody touches it later.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "slab/sizeclass.h"

enum { TSL_SLAB_WORDS = 64 };

// The first words of `free` share a line with the owner's counts, those of `remote` one with the
// summary: a slab of 256 blocks or fewer is one line for its owner and one for everybody else.
struct tsl_slab {
  uint64_t summary;               // [owner] words of `free` that have bits
  struct tsl_slab *next;          // [owner] neighbours on the stock's list of slabs with room
  struct tsl_slab *prev;          // [owner]
  uint32_t out;                   // [owner] blocks neither in `free` nor in `remote`
  uint8_t class;                  // [owner, read by any] set when the slab is opened
  bool listed;                    // [owner] on the stock's list
  bool guarded;                   // [owner] its last page is a guard (secure build)
  bool has_given;                 // [owner, helper; lock:holds once it is sealed] pages went back
                                  // since it was last taken from
  uint64_t free[TSL_SLAB_WORDS];  // [owner, read by any; once it is sealed, remote]
  uint32_t sparse_ms;  // [owner, helper] when it was first seen to be mostly free; 0: it is not
  // [owner, helper; lock:holds once it is sealed] Blocks that were out as its dead pages went back
  // last; 0: they did not since it was last taken from. As for `blocks` in cell.h.
  uint32_t purged_out;

  TSL_ON_LINE uint64_t remote_summary;  // [remote]
  uint32_t ready_next;                  // [remote] link on the ready stack, written by who pushes
  uint32_t life;                        // [const while open] the life of its heap
  int32_t left;                         // [remote] frees until a sealed slab is empty
  uint32_t sealed;                      // [remote] 0: not; else 1, and its rank (tsl_slab_spare)
  uint32_t gatherer;                    // [remote] home that gathers, or did; 0: none ever
  uint64_t remote[TSL_SLAB_WORDS];      // [remote]
};

_Static_assert(sizeof(struct tsl_slab) == TSL_RECORD_SLAB_BYTES,
               "a slab fills its part of the record");

// A word's worth of blocks.
struct tsl_handful {
  uint64_t blocks;  // one bit each
  uintptr_t base;   // address of bit 0
};

TSL_ALWAYS_INLINE struct tsl_slab *tsl_slab_at(size_t unit) {
  return (struct tsl_slab *)tsl_record_address(unit);
}
TSL_ALWAYS_INLINE size_t tsl_slab_unit(const struct tsl_slab *slab) {
  return ((uintptr_t)slab - tsl_region.records) / TSL_RECORD_BYTES;
}

// A block's slab, and its index there. Index -1: the address is not the beginning of a block.
struct tsl_position {
  struct tsl_slab *slab;
  int index;
};

// Needs nothing but the address and the class, so that a free from another thread reads no line
// that the owner writes.
TSL_ALWAYS_INLINE struct tsl_position tsl_slab_position(unsigned class, const void *block) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[class];
  uintptr_t offset = (uintptr_t)block & sizeclass->slab_mask;
  bool exact;
  uint32_t index = (uint32_t)tsl_sizeclass_divide(class, offset, &exact);
  size_t unit = tsl_unit_of((void *)((uintptr_t)block - offset));
  return (struct tsl_position){tsl_slab_at(unit),
                               exact && index < sizeclass->capacity ? (int)index : -1};
}

// Makes an empty slab of the units from `unit` on. The caller enters them in the map.
TSL_HIDDEN struct tsl_slab *tsl_slab_open(tsl_unit unit, unsigned class, uint32_t life);

// Clears the remote words: the record of a free unit has no remote bits.
TSL_HIDDEN void tsl_slab_clear_remote(struct tsl_slab *slab);

// Ends an empty slab, or one whose blocks end with it. False when the system leaves its guard in
// place (secure build): then it stays a slab.
TSL_HIDDEN bool tsl_slab_close(struct tsl_slab *slab);

// Secure build: zeroes a slab whose blocks end with it.
TSL_HIDDEN void tsl_slab_wipe(struct tsl_slab *slab);

// Takes the free blocks of one word out of a slab with room.
TSL_HIDDEN struct tsl_handful tsl_slab_take(struct tsl_slab *slab);

// Puts a block that is out back, by the owner. False, and no effect, when it is free already. (A
// block that another thread freed meanwhile is found when the slab is collected.)
TSL_ALWAYS_INLINE bool tsl_slab_put(struct tsl_slab *slab, unsigned index) {
  unsigned word = index / 64;
  uint64_t before = slab->free[word];
  if (tsl_unlikely((before >> index % 64 & 1) != 0)) return false;
  tsl_store_release(&slab->free[word], before | UINT64_C(1) << index % 64);  // pairs: tend-free
  slab->summary |= UINT64_C(1) << (word % TSL_SLAB_WORDS);                   // S3
  slab->out--;                                                               // S1
  return true;
}

// Puts several blocks of a word back that are out, by the owner.
TSL_ALWAYS_INLINE void tsl_slab_put_word(struct tsl_slab *slab, unsigned word, uint64_t blocks) {
  tsl_assert((slab->free[word] & blocks) == 0);
  tsl_store_relaxed(&slab->free[word], slab->free[word] | blocks);
  slab->summary |= UINT64_C(1) << (word % TSL_SLAB_WORDS);
  slab->out -= tsl_bit_count(blocks);
}

enum tsl_remote {
  TSL_REMOTE_DONE,
  TSL_REMOTE_PUSH,
  TSL_REMOTE_EMPTY,
  TSL_REMOTE_TWICE,
  TSL_REMOTE_LATE
};

// The rest of a free of one block that found its bit set: see tsl_slab_put_remote.
TSL_HIDDEN enum tsl_remote tsl_slab_put_sealed(struct tsl_slab *slab, unsigned word, uint64_t bit);

// Counts one of the frees that a sealed slab waits for. EMPTY or DONE.
TSL_HIDDEN enum tsl_remote tsl_slab_count_down(struct tsl_slab *slab);

// S2, S4: puts blocks of one word back from any thread; several only where the slab cannot be
// sealed. PUSH: the caller must push the slab on its heap's ready stack. EMPTY: the slab is sealed
// and this was its last block; the caller gives it back. LATE: the slab is sealed; the caller
// counts down. TWICE: `*blocks`, now, were free before.
TSL_ALWAYS_INLINE enum tsl_remote tsl_slab_put_remote(struct tsl_slab *slab, unsigned word,
                                                      uint64_t *blocks) {
  uint64_t before = tsl_or_acq_rel(&slab->remote[word], *blocks);  // pairs: remote-free, seal
  uint64_t twice = before & *blocks;
  if (tsl_unlikely(twice != 0)) {
    *blocks = twice;
    return tsl_slab_put_sealed(slab, word, twice);
  }
  if (tsl_likely(before != 0)) return TSL_REMOTE_DONE;
  uint64_t word_bit = UINT64_C(1) << (word % TSL_SLAB_WORDS);
  uint64_t words = tsl_or_acq_rel(&slab->remote_summary, word_bit);  // pairs: remote-summary, seal
  if (tsl_unlikely((words & word_bit) != 0)) return tsl_slab_count_down(slab);
  return words != 0 ? TSL_REMOTE_DONE : TSL_REMOTE_PUSH;
}

// What sealing found.
struct tsl_sealed {
  uint32_t out;       // blocks out at that moment
  bool empty;         // the caller gives the slab back
  const void *twice;  // a block that was freed by two threads; NULL: none
};

// Seals the slab (S5). Before that the heap's hot blocks must be back in their slabs, its ready
// stack closed, and the slabs on it collected. The slab waits for `holds` frees more, as it does
// after tsl_slab_hold. The heap's owner, or the thread that acts for it.
TSL_HIDDEN struct tsl_sealed tsl_slab_seal(struct tsl_slab *slab, uint32_t holds);

// Whether any block of the slab is kept (kept.h). Once a block was kept in the process.
TSL_HIDDEN bool tsl_slab_keeps(const struct tsl_slab *slab);

// Takes the bits of blocks that are free off (KE1). The owner, or the thread that holds a sealed
// slab.
TSL_HIDDEN void tsl_slab_drop_kept(struct tsl_slab *slab);

// The rank that tsl_slab_spare gave a sealed slab; 0: none.
TSL_ALWAYS_INLINE uint32_t tsl_slab_rank(const struct tsl_slab *slab) {
  uint32_t sealed = tsl_load_acquire(&slab->sealed);  // pairs: kept
  return sealed < 2 ? 0 : sealed - 1;
}

// Ends the live blocks of a sealed slab that are not kept, and returns their number: the caller
// counts them down. Those that are kept are so no more, and the slab gets a rank (spare.h). The
// thread that ends the epoch, and holds the slab.
TSL_HIDDEN uint32_t tsl_slab_spare(struct tsl_slab *slab, uint32_t rank);

// Counts so many of the frees that a sealed slab waits for. EMPTY or DONE.
TSL_HIDDEN enum tsl_remote tsl_slab_count_down_by(struct tsl_slab *slab, uint32_t count);

// The live blocks of a sealed slab. A moment's value.
TSL_HIDDEN uint32_t tsl_slab_live(const struct tsl_slab *slab);

// Holds a sealed slab: it waits for one free more, and so cannot go back before the caller has
// called tsl_slab_count_down. False when the slab is not sealed or has no blocks. Any thread.
TSL_HIDDEN bool tsl_slab_hold(struct tsl_slab *slab);

// [remote] How often a slab was taken from after its dead pages had gone back.
TSL_HIDDEN extern uint32_t tsl_slab_refaults;

// Whether that is worth it: half of the blocks are free that were out when it was done last, or
// `before` where it was not done yet. `out`: now.
static inline bool tsl_slab_has_thinned(const struct tsl_slab *slab, uint32_t out,
                                        uint32_t before) {
  uint32_t last = tsl_load_relaxed(&slab->purged_out);
  return last == 0 ? 2 * out <= before : out != 0 && 2 * out <= last;
}

// Gives back the pages in which no block is out. `out`: how many are. Owner, or the thread that
// holds a sealed slab.
TSL_HIDDEN struct tsl_purged tsl_slab_purge(struct tsl_slab *slab, uint32_t out);

// For the helper that tends the home (change.h): the blocks that are free or on their way there,
// and the same as tsl_slab_purge, where those on their way are dead, too.
TSL_HIDDEN unsigned tsl_slab_free_blocks(const struct tsl_slab *slab);
TSL_HIDDEN struct tsl_purged tsl_slab_purge_tended(struct tsl_slab *slab, uint32_t out);

// Counts `out` anew from the free bits, after a fork took the owner in the middle of a put.
TSL_HIDDEN void tsl_slab_recount(struct tsl_slab *slab);

// Moves the remote bits to the free ones; only after the slab was popped from the ready stack.
// Returns a block that was free already, NULL when there is none.
TSL_HIDDEN const void *tsl_slab_collect(struct tsl_slab *slab);

// The blocks of a word that are free or on their way there; a sealed slab's remote bits are all set
// and mean nothing. Any thread.
TSL_ALWAYS_INLINE uint64_t tsl_slab_free_word(const struct tsl_slab *slab, unsigned word) {
  // In this order: the remote bits read are from before the seal that `sealed` tells of.
  uint64_t remote = tsl_load_acquire(&slab->remote[word]);  // pairs: remote-free
  bool is_sealed = tsl_load_relaxed(&slab->sealed) != 0;
  return tsl_load_relaxed(&slab->free[word]) | (is_sealed ? 0 : remote);
}

// Whether a block is free or was freed from another thread: never true of a live one. Any thread.
TSL_ALWAYS_INLINE bool tsl_slab_has(struct tsl_position position) {
  unsigned word = (unsigned)position.index / 64, bit = (unsigned)position.index % 64;
  return (tsl_slab_free_word(position.slab, word) >> bit & 1) != 0;
}

// The block of the word that the lowest bit stands for.
TSL_HIDDEN const void *tsl_slab_first(const struct tsl_slab *slab, unsigned word, uint64_t blocks);

TSL_HIDDEN bool tsl_slab_valid(const struct tsl_slab *slab);
