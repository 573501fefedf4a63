// heap: one thread's part of one epoch. A thread's home heap is its part of the default epoch,
// which never closes; a heap of another epoch belongs to a home heap, and so to its thread.
//
// Per size class it has a bin (hot: the blocks freed last, linked through themselves) and a stock
// (cold: the rest of a word of free blocks, and the slabs with room). A heap of a young epoch has
// no stocks of its own: it lays its blocks in cells.
//
//  H1  everything but [remote] fields belongs to the home heap's thread; a pooled home heap belongs
//      to whoever claimed it, a heap that is being sealed to whoever claimed that
//  H2  each block that is not live is in one place: on a bin, in a stock, in a gather, in the
//      quarantine, in a bit of its slab
//  H3  above TSL_TINY_LIMIT a home heap's bin may hold blocks of other home heaps' slabs, which go
//      back there when they leave it
//  H4  a slab is on its stock's list exactly when it is `listed`; every listed slab has a bit in
//      `free`; every slab is on its heap's list
//  H5  heaps are never unmapped. A number is one home heap for ever; a heap of an epoch gets
//      another life once it is sealed, and the upper half of `ready` is the number of that life: a
//      late push of a slab of an earlier life fails
//  H6  a heap is sealed at most once a life, and only while `depth` is 0 and its epoch is closed
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stack.h"
#include "epoch/bin.h"
#include "epoch/tally.h"
#include "slab/cell.h"
#include "slab/secure.h"
#include "slab/stock.h"

// An entry of the address map: heap number << 8 | code. The codes of slabs are twice their class,
// which is also a bin's place in words of 8 bytes.
enum {
  TSL_CODE_BITS = 8,
  TSL_CODES = 2 * TSL_CLASSES,
  TSL_CELL_CODES = 2 * TSL_BINS,
  TSL_CODE_LARGE = 0x7e,
  // Beside the code of a home heap's slab for blocks up to TSL_TINY_LIMIT: others freed blocks that
  // the owner has not collected yet. It takes the owner's frees off the fast path (remote.h).
  TSL_CODE_VISITED = 0x80,
};
_Static_assert(TSL_CELL_CODES < TSL_CODE_LARGE, "a code fits its bits");

// Numbers that no heap has: that in the map entries of sealed slabs, and the empty heap's.
enum { TSL_HEAP_NOBODY = TSL_MOST_HEAPS, TSL_HEAP_SEALED };

TSL_ALWAYS_INLINE unsigned tsl_entry_code(uint32_t entry) { return entry & (TSL_CODE_VISITED - 1); }

// Of map entries of units that are cut into cells.
TSL_ALWAYS_INLINE bool tsl_code_is_cell(unsigned code) {
  return code - TSL_CODES < TSL_CELL_CODES - TSL_CODES;
}

enum { TSL_HEAP_UNITS = 64, TSL_HEAP_SLOTS = 8, TSL_HEAP_PARTS = 8 };

// Freed blocks of one word of another home heap's slab, which wait to be sent together (remote.h).
struct tsl_gather {
  uintptr_t start;  // [owner] of the word's first block; 0: no word
  uint64_t opened;  // [owner] bit i: the block i places behind was to be waited for,
  uint64_t out;     // [owner] and still is; the others wait
  uint32_t owner;   // [owner] whose slab it is
  uint32_t round;   // [owner] odd while the gather begins with another word
};

enum { TSL_GATHERS = TSL_CLASS_OF_1280 };

// What only heaps with slabs need.
struct tsl_store {
  // First, so that a bin's place times 2 is its stock's.
  struct tsl_stock stocks[TSL_BINS];
  uint64_t allocations[TSL_BINS];  // [owner] those before `until` was set, plus that number
  uint32_t seen[TSL_BINS];         // [owner] `until` when the bin's `room` was true
  uint32_t rest_total[TSL_BINS];   // [owner] allocations of each class when it was last looked at
  tsl_unit sparse_next;            // [owner] the slab to look at next; 0: the first
  bool slabs_wait;                 // [owner] this round over the slabs met one that may be due soon
  bool round_waits;                // [owner] the last round did, or the heap slept before it
  uint64_t sparse_due_ms;          // [owner] not before this
  uint32_t rest_next;              // [owner] the class to look at next
  uint32_t quarantine_next;        // [owner]
  tsl_unit units[TSL_HEAP_UNITS];  // [owner] a home heap's cache of empty units
  uint32_t slots[TSL_HEAP_SLOTS];  // [owner] and of slots of retired epochs
  uint32_t parts[TSL_HEAP_PARTS];  // [owner] heaps of the thread's last epochs, by their slots
  struct tsl_gather gathers[TSL_GATHERS];  // by class
  struct tsl_tally tallies[TSL_BINS];      // by class
  struct tsl_cell_tally cells;             // home heap
  uint64_t sample_seed;                    // [owner] home heap: random state; 0: not yet
  uint64_t points_since_ms;                // [owner] home heap: points are counted since then
  uint32_t points;                         // [owner] home heap: that samples could be taken at
  uint32_t sample_times;                   // [owner] home heap: for those drawn from now on
  uint64_t sampled_hot;   // [owner] bit i: class i's `until` ends at a block to be sampled
  uint64_t sampled_cold;  // [owner] bit i: its next block beyond the stock is to be sampled
  void *quarantine[TSL_QUARANTINE_BLOCKS];  // [owner] secure build: blocks freed last, wiped,
  uint8_t quarantined[TSL_BINS];            // [owner] and how many of each class they are
  const void *handed;                       // [owner] secure build: the block allocated last
};

enum tsl_heap_sealing { TSL_HEAP_UNSEALED, TSL_HEAP_SEALING, TSL_HEAP_IS_SEALED };

// What a fork may have made of a heap: nothing; its thread is gone, perhaps in the middle of a fast
// path; or somebody is laying it down, who may be gone.
enum tsl_heap_torn { TSL_HEAP_WHOLE, TSL_HEAP_PERHAPS_TORN, TSL_HEAP_TORN };

enum tsl_heap_hold { TSL_HEAP_OWNED, TSL_HEAP_POOLED, TSL_HEAP_LOOKED_AT };

struct tsl_heap {
  // First, so that a bin's place is its distance from the heap's address.
  struct tsl_bin bins[TSL_BINS];

  uint32_t tag;             // [const] number << TSL_CODE_BITS
  uint32_t number;          // [const] TSL_HEAP_NOBODY in the empty heap
  size_t contained;         // [const] links below this stay in the region; 0 in the empty heap
  struct tsl_store *store;  // [owner] its own, or the empty one
  uintptr_t cell_next;      // [owner] end of the blocks in the newest cell
  uintptr_t cell_end;       // [owner] 0 when no cell is in use
  uintptr_t cell_start;     // [owner] and its first block; this and the next are of the newest cell
  uint32_t cell_blocks;     // [owner] handed out from it
  uint64_t cell_freed;      // [owner] of these, freed by the heap's thread (tsl_cell_shares)
  struct tsl_heap *home;    // [const] the home heap of the thread whose heap this is

  tsl_cell_number cells;         // [owner] newest and
  tsl_cell_number cells_oldest;  // [owner] oldest on the list of cells
  uint32_t cell_count;           // [owner]
  uint32_t cell_pages;           // [owner] of all cells
  tsl_unit slabs;                // [owner] list of all slabs (tsl_span)
  uint32_t slab_count;           // [owner]
  uint32_t epoch;                // [owner] slot of its epoch; 0 in home heaps
  uint32_t epoch_next;           // [owner until pushed, then const] next heap of the epoch
  uint32_t depth;                // [owner, read by closers] scopes open
  uint32_t sealing;              // [remote] one of enum tsl_heap_sealing
  uint32_t holds;                // [remote] who still needs it: its life, and its epoch's list
  uint32_t life;                 // [owner] times it was sealed
  uint32_t spare;                // [owner] home heap: its heaps without an epoch; else the next one
  uint32_t family;               // [owner] home heap: all its heaps; else the next one
  uint64_t cut_objects;          // [owner] a part's blocks in older cells, since it began,
  uint64_t cut_granules;         // [owner] and what they take;
  uint64_t freed_objects;        // [owner] of these, freed by the heap's thread,
  uint64_t freed_granules;       // [owner] and what they took, gaps included
  uintptr_t told_next;           // [owner] cell_next and
  uint64_t told_freed;           // [owner] cell_freed when they were last reported
  uint64_t told_granules;        // [owner] cut_granules and
  uint64_t told_freed_granules;  // [owner] freed_granules when its cells were
  uint64_t told_ms;              // [owner] home heap: when it last reported all
  uint32_t thread;               // [owner] home heap: its thread's number; 0: not known yet
  tsl_unit pending;              // [owner] slabs taken from `ready` and not looked at yet
  uint32_t pool_next;            // [remote] link while in the pool
  uint32_t hold;                 // [remote] one of enum tsl_heap_hold
  uint32_t unit_count;           // [owner] length of a home heap's cache of empty units,
  uint32_t unit_low;             // [owner] and the least of it since the last tick
  uint32_t slot_count;           // [owner] length of a home heap's cache of slots
  uint32_t ticks;                // [owner] refills until the next look at what is not needed
  uint32_t sample_times;         // [owner] points that each one drawn here stands for; 0: one
  uint8_t mixed;                 // [owner] new blocks go to cells
  uint8_t sampled_cell;  // [owner] cell_end lies before the newest cell's end, in a block to sample
  uint8_t refused;       // [owner] a limit refused the memory that the last refill wanted
  uint16_t pace;      // [owner] home heap: hot allocations until the next look, while it is awake
  uint8_t awake;      // [owner] home heap: there may be memory to give back
  uint8_t sampling;   // [owner] home heap: its points were drawn while samples are taken
  uint8_t inside;     // [owner, read after fork] home heap: the thread is in the middle of a change
  uint8_t telling;    // [owner] home heap: a limit's callback runs
  uint8_t unwinding;  // [owner] home heap: the unwinder looks for callers; it may allocate
  uint8_t torn;       // [owner] one of enum tsl_heap_torn

  TSL_ON_LINE uint64_t ready;  // [remote] life << 32 | slabs with remote bits
  uint32_t returned;           // [remote] home heap: its heaps that others sealed
};

_Static_assert(sizeof(struct tsl_heap) <= TSL_HEAP_BYTES, "a heap fits its place");
_Static_assert(sizeof(struct tsl_store) <= TSL_STORE_BYTES, "a store fits its place");
// The heap of threads that have none: all bins empty, no room, no tag that any entry has. Never
// written.
TSL_HIDDEN extern struct tsl_heap tsl_heap_empty;

// The store of heaps that have none: all stocks empty. Never written.
TSL_HIDDEN extern struct tsl_store tsl_store_empty;

TSL_HIDDEN extern TSL_TLS struct tsl_heap *tsl_heap_current;

TSL_ALWAYS_INLINE struct tsl_heap *tsl_heap_at(uint32_t number) {
  return (struct tsl_heap *)(tsl_region.heaps + (uintptr_t)number * TSL_HEAP_BYTES);
}

TSL_ALWAYS_INLINE bool tsl_heap_has_store(const struct tsl_heap *heap) {
  return heap->store != &tsl_store_empty;
}

// B5: the frees that a bin still takes. The thread's allocations take blocks off without counting
// `room`.
TSL_ALWAYS_INLINE int32_t tsl_heap_room(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_bin *bin = &heap->bins[class];
  uint32_t taken = tsl_load_relaxed(&heap->store->seen[class]) - tsl_load_relaxed(&bin->until);
  return tsl_load_relaxed(&bin->room) + (int32_t)taken;
}

// Of any owner in the map.
static inline bool tsl_heap_is_home(uint32_t owner) {
  return owner < TSL_HEAP_NOBODY && tsl_heap_at(owner)->home == tsl_heap_at(owner);
}

// Collects up to `budget` slabs with remote frees. Owner only.
TSL_HIDDEN void tsl_heap_look_at_ready(struct tsl_heap *heap, unsigned budget);

// A block of a class whose stock has nothing left, and for which the newest cell has no room. NULL
// when memory is out. Owner only.
TSL_HIDDEN void *tsl_heap_refill(struct tsl_heap *heap, unsigned class);

// Puts a block of the heap back in its slab. Owner only.
TSL_HIDDEN void tsl_heap_put(struct tsl_heap *heap, unsigned class, void *block);

// The same for a block whose bin seemed full when one was taken from its `room`, or has the block
// as its head already.
TSL_HIDDEN void tsl_heap_put_full(struct tsl_heap *heap, void *block, size_t code);

// The same for a block of a home heap's slab to which others freed since the owner collected there:
// the block may be one of theirs.
TSL_HIDDEN void tsl_heap_put_visited(struct tsl_heap *home, unsigned class, void *block);

// Puts a block of another home heap on this one's bin: one of many cache lines, so that nobody has
// to share lines with a stranger. False when it has to go home instead. Owner only.
TSL_HIDDEN bool tsl_heap_adopt(struct tsl_heap *home, uint32_t owner, unsigned class, void *block);

// A block of the class that lies in a slab, at a multiple of the class's size; NULL when memory is
// out. Owner only.
TSL_HIDDEN void *tsl_heap_pop(struct tsl_heap *heap, unsigned class);

// The same without a look at what is due: the caller's refill has looked. Owner only.
TSL_HIDDEN void *tsl_heap_pop_quietly(struct tsl_heap *heap, unsigned class);

// As tsl_heap_pop, unless the block is to be sampled: then it is another one, which lies in a cell.
TSL_HIDDEN void *tsl_heap_pop_sampled(struct tsl_heap *heap, unsigned class);

// Puts a live block on the heap's bin, or one of the heap's own back in its slab. Owner only.
TSL_HIDDEN void tsl_heap_push(struct tsl_heap *heap, unsigned class, void *block);

// Puts back what lies in a slab of any heap, by the class of its map entry. Any thread.
TSL_HIDDEN void tsl_heap_put_any(uint32_t entry, void *block);

// Moves hot blocks and stocks to their slabs, without looking whether these became empty. The
// owner, or who seals the heap, or who looks at it while nobody uses it.
TSL_HIDDEN void tsl_heap_lay_down(struct tsl_heap *heap);

// A class that the thread has not allocated from since the last look gives free blocks back to
// their slabs, so that these can empty. One class a call at most. Owner only.
TSL_HIDDEN void tsl_heap_rest(struct tsl_heap *heap);

// Puts all hot blocks and stocks back in their slabs, and settles those. Owner only.
TSL_HIDDEN void tsl_heap_rest_all(struct tsl_heap *heap);

// Blocks of a class that are out of their slabs, but free: on the bin or in the stock. A moment's
// value.
TSL_HIDDEN size_t tsl_heap_hot_blocks(const struct tsl_heap *heap, unsigned class);

// Ends the life of the ready stack: no later push succeeds. What was on it is collected. Who seals
// the heap.
TSL_HIDDEN void tsl_heap_close_ready(struct tsl_heap *heap);

// Gives back the units of a slab that was closed and is on no list. Any thread.
TSL_HIDDEN void tsl_heap_give_slab(struct tsl_slab *slab);

// Moves every hot block to its slab and looks at all that came back: empty slabs are given away.
// Owner only.
TSL_HIDDEN void tsl_heap_collect(struct tsl_heap *heap);

// When samples are taken from now on, or no more: what was drawn before does not hold. Owner only.
TSL_HIDDEN void tsl_heap_follow_samples(struct tsl_heap *home);

// Draws the points anew that lie before a heap's hot blocks and stocks. Owner only.
TSL_HIDDEN void tsl_heap_redraw(struct tsl_heap *heap);

TSL_HIDDEN bool tsl_heap_valid(const struct tsl_heap *heap);
