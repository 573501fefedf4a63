// heap: where the blocks lie that one thread has of one epoch. In the default epoch, which never
// closes, a thread's heap is its home; in a declared epoch it is a part, which belongs to a home
// and so to its thread. Both begin with what they have in common.
//
// Per size class a heap has a bin (hot: the blocks freed last, linked through themselves) and a
// stock (cold: the rest of a word of free blocks, and the slabs with room). A part of a young epoch
// has no stocks of its own: it lays its blocks in cells.
//
//  H1  everything but [remote] fields belongs to the home's thread; a pooled home belongs to who
//      claimed it, a part that is being sealed to who claimed that
//  H2  each block that is not live is in one place: on a bin, in a stock, in a gather, in the
//      quarantine, in a bit of its slab
//  H3  a slab is on its stock's list exactly when it is `listed`; every listed slab has a bit in
//      `free`; every slab is on its heap's list
//  H4  heaps are never unmapped; a number is one home or one part for ever, and a part's home stays
//
// Homes:
//  HO1  a home is its own home, has a store and is in epoch 0 and its life 0
//  HO2  above TSL_TINY_LIMIT a home's bin may hold blocks of other homes' slabs, which go back
//      there when they leave it
//  HO3  each part of a home is on its list `family`
//
// Parts:
//  PA1  a part gets another life once it is sealed, and the upper half of `ready` is the number of
//      that life: a late push of a slab of an earlier life fails
//  PA2  a part is sealed at most once a life, and only while `depth` is 0 and its epoch is closed;
//      by another thread than its own only after `frees` was 0: a free that begins later is refused
//  PA3  a part without an epoch has no slabs and no store, and no cells unless it is warm (warm.h)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/stack.h"
#include "slab/cell.h"
#include "slab/secure.h"
#include "slab/stock.h"
#include "state/entry.h"
#include "state/tally.h"
#include "tslab.h"

struct tsl_free_block {
  uintptr_t mark;
  uintptr_t link;
};

// The blocks of a size class that were freed last (bin.h).
struct tsl_bin {
  struct tsl_free_block *head;  // [owner] the block freed last
  uint32_t until;               // [owner] allocations before the one that looks at the counters
  int32_t room;                 // [owner] frees until the next look at how long it is
};

_Static_assert(sizeof(struct tsl_bin) == TSL_BIN_BYTES &&
                   sizeof(struct tsl_bin) == sizeof(struct tsl_sizeclass),
               "a bin's offset is that of its class in the table of size classes");
_Static_assert(sizeof(struct tsl_stock) == 2 * sizeof(struct tsl_bin),
               "a bin's offset times 2 is its stock's");

// Where the last link of every bin leads. Its own link is larger than any in the region, so that
// the comparison of B1 (bin.h) fails on it.
TSL_HIDDEN extern struct tsl_free_block tsl_bin_end;

enum { TSL_HOME_UNITS = 64, TSL_HOME_SLOTS = 8, TSL_HOME_PARTS = 8, TSL_HOME_WARM = 4 };
enum { TSL_HOME_LABELS = 8, TSL_HOME_REGULARS = 4, TSL_HOME_SAMPLES = 8 };
enum { TSL_HOME_SHARED_PLACES = 64, TSL_HOME_LABEL_PLACES = 64 };

// Freed blocks of one word of another heap's slab, which wait to be sent together (remote.h).
struct tsl_gather {
  uintptr_t start;  // [owner] of the word's first block; 0: no word
  uint64_t opened;  // [owner] bit i: the block i places behind `start` is one of this gather's;
  uint64_t out;     // [owner] and it was not freed yet. Those of `opened` without this bit wait
  uint32_t owner;   // [owner] the heap whose slab it is
  uint32_t round;   // [owner] odd while the fields above change to another word
};

enum { TSL_GATHERS = TSL_CLASS_OF_1280 };

// How many blocks a bin may hold (B6, bin.h).
struct tsl_bin_limit {
  uint32_t passed;  // [owner] frees that met a full bin, since the last refill or allocation
  uint32_t told;    // [owner] allocations of the class when such frees were told last
  uint16_t now;     // [owner]
  uint16_t most;    // [owner] what `now` becomes at the next refill
};

// Finds the classes that are no longer allocated from (rest.h).
struct tsl_rest {
  uint32_t totals[TSL_BINS];  // [owner] allocations of each class when it was last looked at
  uint32_t next;              // [owner] the class to look at next
  uint32_t sum;               // [owner] of all classes' bins and stocks, when that was asked last
};

// The round over the slabs that are mostly free (sparse.h).
struct tsl_sparse {
  tsl_unit next;     // [owner] the slab to look at next; 0: the first
  bool slabs_wait;   // [owner] this round over the slabs met one that may be due soon
  bool round_waits;  // [owner] the last round did, or the heap slept before it
  uint64_t due_ms;   // [owner] not before this
  uint64_t blocks;   // [helper] free ones that this round met,
  uint64_t before;   // [helper] and that the round before met
};

// The bytes that became free, since the helper last looked, in the slabs that it tends for a home,
// and those of the home's warm parts (loose.h).
struct tsl_loose {
  size_t freed_bytes;    // [owner] that came back to them since they were added up last
  size_t free_seen;      // [owner] bytes that were free in them
  uint32_t rounds_seen;  // [owner] when so many rounds over them had ended
  size_t warm_bytes;     // [owner] of the parts that were warm at its last tick
  size_t parts_bytes;    // [owner] that became free in its parts of epochs of their own
  ptrdiff_t sent_bytes;  // [owner] that it freed in memory of others, less what it collected,
                         // until they are added to the sum of all threads
  uint32_t sent_owner;   // [owner] the heap in which it freed last of these; 0: none
};

// What only heaps with slabs need.
struct tsl_store {
  // First, so that a bin's offset times 2 is its stock's.
  struct tsl_stock stocks[TSL_BINS];
  uint64_t allocations[TSL_BINS];  // [owner] those before `until` was set, plus that number
  uint32_t seen[TSL_BINS];         // [owner] `until` when the bin's `room` was exact last (B5)
  struct tsl_bin_limit limits[TSL_BINS];
  uint32_t quarantine_next;            // [owner]
  struct tsl_tally tallies[TSL_BINS];  // by class
  struct tsl_rest rest;
  struct tsl_sparse sparse;  // the owner's rounds
  struct tsl_sparse tender;  // [helper] the helper's; its `next` also by the owner in a change
  uint64_t sampled_hot;      // [owner] bit i: class i's `until` ends at a block to be sampled
  uint64_t sampled_cold;     // [owner] bit i: its next block beyond the stock is to be sampled
  void *quarantine[TSL_QUARANTINE_BLOCKS];  // [owner] secure build: blocks freed last, wiped,
  uint8_t quarantined[TSL_BINS];            // [owner] and how many of each class they are
};

// Frees in slabs to which others freed (visit.h).
struct tsl_visits {
  uint32_t checks;  // [owner] that were compared since the last pause
  uint32_t ticks;   // [owner] of the pause so far
};

// How many samples a second are wanted (points.c).
enum tsl_points_pace { TSL_POINTS_NONE, TSL_POINTS_CALM, TSL_POINTS_HURRIED, TSL_POINTS_ASKED };

// Where samples lie among what the thread allocates (points.h).
struct tsl_points {
  uint64_t seed;              // [owner] random state; 0: not yet
  double distance;            // [owner] from here to the next, in means
  uint64_t since_ms;          // [owner] they are counted since then
  uint32_t count;             // [owner] points that were reached
  uint32_t cost_of_passed;    // [owner] what passed points cost, in reached ones
  uint32_t passed;            // [owner] points in blocks of which no sample is taken
  uint32_t version;           // [owner] of `times`
  uint32_t times;             // [owner] they are drawn so many times as far apart; 0: once
  enum tsl_points_pace pace;  // [owner] of this count
  uint64_t mean;              // [owner] tsl_points_mean when the thread followed it last
};

// A part that waits for the next epoch of its label (warm.h).
struct tsl_warm {
  uint32_t part;      // [owner, read by helper]
  uint32_t label;     // [owner]
  uint64_t since_ms;  // [owner, read by helper]
};

// A host, and how often the thread came to it (regulars.h).
struct tsl_regular {
  uint64_t word;   // [owner] of the host's record while it is open
  uint32_t host;   // [owner] slot; 0: none
  uint32_t times;  // [owner] while it was among the last ones
};

// The store of a home, which has one from its first day, and what a thread keeps once for all of
// its heaps.
struct tsl_home_store {
  struct tsl_store store;  // first: both have one address

  tsl_unit units[TSL_HOME_UNITS];    // [owner, taken by the helper] empty units at hand
  uint32_t slots[TSL_HOME_SLOTS];    // [owner] slots of retired epochs
  uint32_t labels[TSL_HOME_LABELS];  // [owner] of its last epochs, by where the texts lay (label.h)
  uint32_t parts[TSL_HOME_PARTS];    // [owner] of the thread's last epochs, by their slots,
  uint32_t shared_parts;             // [owner] a bit each: it is of a shared epoch
  struct tsl_end_tally ends;
  uint32_t shared;                                  // [owner] its parts of shared epochs (part.h),
  uint32_t shared_count;                            // [owner] how many,
  uint32_t shared_turn;                             // [owner] the one looked at last; 0: none,
  uint32_t shared_unasked;                          // [owner] ticks since all were asked (tick.c),
  uint32_t shared_in_slabs;                         // [owner] how many left their cells (mixed.c),
  uint32_t shared_by_slot[TSL_HOME_SHARED_PLACES];  // [owner] and the last one of those whose
                                                    // epochs' slots are equal modulo that number
  uint32_t in_use[TSL_HOME_LABEL_PLACES];  // [owner] its parts but the spare ones, by their labels
                                           // modulo that number
  uint32_t back;                           // [owner] list of parts that it took from `returned`,
                                           // and that `in_use` still counts
  uint32_t grown;                       // [owner; helper, while it tends the home] its parts that
                                        // had two cells or a store, and perhaps have ended
  uint32_t passing;                     // [owner] the last heap that did not stay (owner.h) as the
                                        // thread freed there,
  struct tsl_warm warm[TSL_HOME_WARM];  // parts that are warm,
  uint32_t warm_count;                  // [owner, taken by the helper] so many
  uint32_t passing_frees;               // [owner] and its frees there since
  uint32_t gathers_of_homes;            // [owner] a bit a class: its gather is of a home's slab
  struct tsl_gather gathers[TSL_GATHERS];  // by class
  struct tsl_cell_tally cells;
  struct tsl_unit_tally taken;
  struct tsl_visits visits;
  struct tsl_loose loose;
  struct tsl_points points;
  tsl_cell_number samples[TSL_HOME_SAMPLES];  // [owner] for sampled blocks (sampled.c), by heap
  struct tsl_regular regulars[TSL_HOME_REGULARS];  // the last one first
  const void *handed;                              // [owner] secure build: the block allocated last
};

enum tsl_part_sealing { TSL_PART_UNSEALED, TSL_PART_SEALING, TSL_PART_SEALED };

// What a fork may have left of a heap. WHOLE: nothing to mend. PERHAPS_TORN: its thread is lost,
// perhaps in the middle of a fast path. TORN: another thread was laying it down (inspect.c), and
// may be lost.
enum tsl_heap_torn { TSL_HEAP_WHOLE, TSL_HEAP_PERHAPS_TORN, TSL_HEAP_TORN };

enum tsl_home_hold { TSL_HOME_OWNED, TSL_HOME_POOLED, TSL_HOME_LOOKED_AT };

struct tsl_home;

// What homes and parts have in common, and all that the fast paths see.
struct tsl_heap {
  // First, so that a bin's offset counts from the heap's address.
  struct tsl_bin bins[TSL_BINS];

  uint32_t tag;             // [const] number << TSL_CODE_BITS
  uint32_t number;          // [const] TSL_HEAP_NOBODY in the empty home
  size_t contained;         // [const] links below this stay in the region; 0 in the empty home
  struct tsl_store *store;  // [owner] its own, or the empty one
  uintptr_t cell_next;      // [owner, read by helper] end of the blocks in the newest cell
  uintptr_t cell_end;       // [owner] 0 when no cell is in use
  uintptr_t cell_start;     // [owner, read by any] its first block; what follows is of this cell
  uint32_t cell_blocks;     // [owner] handed out
  uint32_t cell_furthest;   // [owner, read by any] of its bytes that were cut, when last cut back
  uint64_t cell_freed;      // [owner] of the blocks, freed by the heap's thread (tsl_cell_shares)
  uint64_t cell_recut;      // [owner] others, freed so that they are cut again (likewise)
  struct tsl_home *home;    // [const] of the thread whose heap this is: itself, when it is one

  tsl_cell_number cells;         // [owner] newest and
  tsl_cell_number cells_oldest;  // [owner] oldest on the list of cells
  uint32_t cell_count;           // [owner]
  uint32_t cell_pages;           // [owner] of all cells
  tsl_unit slabs;                // [owner] list of all slabs (tsl_span)
  uint32_t slab_count;           // [owner]
  uint32_t epoch;                // [owner] slot of its epoch; 0 in homes
  uint32_t depth;                // [owner, read by closers] scopes open
  uint32_t life;                 // [owner] times it was sealed; 0 in homes
  tsl_unit pending;              // [owner] slabs taken from `ready` and not looked at yet
  uint64_t cut_objects;          // [owner] blocks in older cells, since a part began,
  uint64_t cut_granules;         // [owner] and what they take;
  uint64_t freed_objects;        // [owner] of these, freed by the heap's thread,
  uint64_t freed_granules;       // [owner] and what they took, gaps included,
  uint64_t gone_granules;        // [owner] of which so much went with cells that were given back;
  uint64_t loose_granules;       // [owner] freed_granules when loose.h was told last
  uint32_t told_granules;        // [owner] the lower halves of cut_granules and
  uint32_t told_freed_granules;  // [owner] freed_granules when its cells were
  uint32_t sample_version;       // [owner] of all that decides `sample_apart`, when that was set
  uint32_t cell_cut_back;        // [owner, read by any] the block of the newest cell that was cut
                                 // back last (cut_back.h); 0: none was
  uint64_t sample_apart;  // [owner] bytes from point to point, on average, of its points; 0: none
  uint32_t leaves;        // [owner] scopes until the one that is told (scope.c)
  uint8_t cell_class;  // [owner] of the cell to take where it has none; 0: new blocks go to slabs,
                       // as in homes always
  uint8_t sampled_cell;  // [owner] cell_end lies before the newest cell's end, in a block to sample
  uint8_t refused;       // [owner] a limit refused the memory that the last refill wanted
  uint8_t torn;          // [owner, read by helper] one of enum tsl_heap_torn

  // The last word. Its line goes on with the remote words of the home or the part.
  tslab_epoch name;  // [owner] the epoch entered: `epoch`, or one that shares it; stays when left
  uint64_t ready;    // [remote] life << 32 | slabs with remote bits
};

// A thread's heap in the default epoch, with what the thread keeps for all of its heaps.
struct tsl_home {
  struct tsl_heap heap;  // first: both have one address

  uint32_t returned;     // [remote] its parts that others sealed
  uint32_t pool_next;    // [remote] link while in the pool
  uint32_t before;       // [const] the home that was added before it; 0: it is the first
  uint32_t hold;         // [remote] one of enum tsl_home_hold
  uint32_t unvisited;    // [owner, read by any] a pause: others do not mark its slabs (visit.h)
  uint32_t stores;       // [remote] its parts that have a store
  uint32_t ready_seen;   // [helper] the heads of the stacks of slabs with remote bits, added up, as
                         // the last round came to each
  uint64_t look_ms;      // [helper] the next round is due then; 0: none is
  uint64_t rest_ms;      // [helper] no round begins before
  uint32_t opened_seen;  // [helper] `opened` at the last round,
  bool was_pooled;       // [helper] which found it in the pool

  TSL_ON_LINE struct tsl_home_store *own;  // [const] its heap's store
  struct tsl_heap *outlived;               // [owner] the part of a shared epoch that its thread
                                           // freed into last from outside; the empty heap: none
  uint64_t told_ms;                        // [owner] when its thread last reported all
  uint32_t spare;                          // [owner] its parts without an epoch
  uint32_t family;                         // [owner] all its parts
  uint32_t thread;                         // [owner] its thread's number; 0: not known yet
  uint32_t unit_count;  // [owner, taken by the helper] length of the cache of empty units,
  uint32_t unit_low;    // [owner, taken by the helper] and the least of it since the last trim
  uint32_t slot_count;  // [owner] length of the cache of slots
  uint32_t taken;       // [owner] units for slabs since the last trim
  uint32_t opened;      // [owner, read by helper] slabs that its heaps opened
  uint32_t ticks;       // [owner] refills until the next look at what is not needed
  uint32_t pace;        // [owner] hot allocations of a class from one look to the next
  uint8_t was_late;     // [owner] its last tick that hot allocations brought about came late
  uint8_t awake;        // [owner] there may be memory to give back
  uint8_t telling;      // [owner] a limit's callback runs
  uint8_t unwinding;    // [owner] the unwinder looks for callers; it may allocate
  uint32_t changing;    // [owner, read by the helper and after a fork] a change is on (change.h)

  // What the helper sets seldom and the owner reads often.
  uint32_t tended;     // [helper, read by owner] it tends the home (change.h)
  uint32_t loosened;   // [remote, taken by the helper] slabs have more free blocks (loose.h),
  size_t loose_bytes;  // [owner, taken by the helper] so many bytes of them when asked last
  uint32_t rounds;     // [helper, read by owner] ended over its slabs and its parts' (rounds.h)
};

// A thread's heap in a declared epoch.
struct tsl_part {
  struct tsl_heap heap;  // first: both have one address

  uint32_t sealing;  // [remote] one of enum tsl_part_sealing
  uint32_t holds;    // [remote] who still needs it: its life, and its epoch's list

  TSL_ON_LINE uint32_t epoch_next;  // [owner until pushed, then const] next part of the epoch
  uint32_t spare_next;              // [owner] next part of its home without an epoch
  uint32_t family_next;             // [owner] next part of its home
  uint32_t shared_next;             // [owner] next part of its home that is of a shared epoch
  uint32_t grown_next;              // [owner until listed, then helper] next part of its home that
  uint32_t is_grown;                // [owner; helper, while it tends the home] is listed in `grown`
  uint32_t shut;                    // [who acts for the owner, read by helper] C5 (change.h)
  uint32_t leave_pace;              // [owner] scopes from one that is told to the next (scope.c)
  uint64_t scopes;                  // [owner] left since it began, up to the last that was told,
  uint64_t left_ms;                 // [owner] and when that was left
  uint32_t rest_in;                 // [owner] closes in a shared epoch until the next looks what
  uint32_t rest_pace;               // [owner] can go back, and so many lie in between (close.c)
  uint32_t rest_leaves;             // [owner] `leaves` at the last of these closes
  uint32_t looks;                   // [owner] looks at what lives in a part of a shared epoch,
  uint64_t look_ms;                 // [owner] when the last one was,
  uint64_t living;                  // [owner] and classes that lived at all (tell/watch.h)
  size_t loose_seen;                // [owner] bytes that were free in its slabs when asked last
  uint32_t loose_life;              // [owner] in this life
  uint32_t frees;       // [owner, read by closers] frees from outside that are under way (scope.h)
  uint32_t free_pace;   // [owner] such frees from one that is told to the next,
  uint32_t untold;      // [owner] and until that one
  uint64_t freed_ms;    // [owner] when one was told last
  uint32_t busy_ms;     // [owner] in a shared epoch: the time when it had freed
  uint32_t busy_freed;  // [owner] so many blocks (mixed.c); lower halves
  uint32_t slot_next;   // [owner] next part of its home at the same place of shared_by_slot
  uint32_t label;       // [owner] of the epoch that it was taken for
};

enum { TSL_REMOTE_LINE = offsetof(struct tsl_heap, ready) };  // of a heap, home or part

_Static_assert(offsetof(struct tsl_heap, bins) == 0, "a bin's offset counts from the heap");
_Static_assert(offsetof(struct tsl_store, stocks) == 0,
               "a bin's offset times 2 counts from the store");
_Static_assert(TSL_REMOTE_LINE % TSL_CACHE_LINE == 0, "remote words have a line");
_Static_assert(sizeof(struct tsl_heap) == TSL_REMOTE_LINE + sizeof(uint64_t),
               "the remote words of homes and parts follow that of the heap");
_Static_assert(offsetof(struct tsl_home, own) == TSL_REMOTE_LINE + TSL_CACHE_LINE,
               "a home's remote words fit the line");
_Static_assert(offsetof(struct tsl_part, epoch_next) == TSL_REMOTE_LINE + TSL_CACHE_LINE,
               "a part's remote words fit the line");
_Static_assert(offsetof(struct tsl_home, heap) == 0, "a home is where its heap is");
_Static_assert(offsetof(struct tsl_part, heap) == 0, "a part is where its heap is");
_Static_assert(offsetof(struct tsl_home_store, store) == 0,
               "a home's store is where its heap's is");
_Static_assert(sizeof(struct tsl_home) <= TSL_HEAP_BYTES, "a home fits its place");
_Static_assert(sizeof(struct tsl_part) <= TSL_HEAP_BYTES, "a part fits its place");
_Static_assert(sizeof(struct tsl_home_store) <= TSL_STORE_BYTES, "a store fits its place");
_Static_assert(TSL_HEAP_BYTES % TSL_CACHE_LINE == 0 && TSL_STORE_BYTES % TSL_CACHE_LINE == 0,
               "no line belongs to two heaps");

// The home of threads that have none: all bins empty, no room, no tag that any entry has. Never
// written.
TSL_HIDDEN extern struct tsl_home tsl_home_empty;

// The store of heaps that have none: all stocks empty. Never written.
TSL_HIDDEN extern struct tsl_store tsl_store_empty;

TSL_HIDDEN extern TSL_TLS struct tsl_heap *tsl_heap_current;

// H4: there is a heap behind a number that was read at any time.
TSL_ALWAYS_INLINE struct tsl_heap *tsl_heap_at(uint32_t number) {
  return (struct tsl_heap *)(tsl_region.heaps + (uintptr_t)number * TSL_HEAP_BYTES);
}

TSL_ALWAYS_INLINE bool tsl_heap_is_home(const struct tsl_heap *heap) {
  return (const struct tsl_heap *)heap->home == heap;
}

// Whether a heap whose number is in use was initialised. Any thread.
static inline bool tsl_heap_is_ready(const struct tsl_heap *heap) {
  return tsl_load_acquire(&heap->number) != 0;  // pairs: heap-init
}

// The heap as what it is.
TSL_ALWAYS_INLINE struct tsl_home *tsl_home_of(struct tsl_heap *heap) {
  tsl_assert(tsl_heap_is_home(heap));
  return (struct tsl_home *)heap;
}
TSL_ALWAYS_INLINE struct tsl_part *tsl_part_of(struct tsl_heap *heap) {
  tsl_assert(!tsl_heap_is_home(heap));
  return (struct tsl_part *)heap;
}
TSL_ALWAYS_INLINE struct tsl_home *tsl_home_at(uint32_t number) {
  return tsl_home_of(tsl_heap_at(number));
}
TSL_ALWAYS_INLINE struct tsl_part *tsl_part_at(uint32_t number) {
  return tsl_part_of(tsl_heap_at(number));
}

// The number of the home that was added last: the list of all homes begins there. A home in it may
// not be ready yet.
TSL_HIDDEN extern uint32_t tsl_last_home;

// The home behind this one on that list, from which no home is taken; 0 behind the last, and the
// first behind 0. Any thread.
static inline uint32_t tsl_home_behind(uint32_t number) {
  if (number != 0) return tsl_home_at(number)->before;
  return tsl_load_acquire(&tsl_last_home);  // pairs: homes
}

// Puts a part that has grown beyond its first cell on the list of these, where it stays until the
// helper finds that it has ended. Owner only, in a change.
TSL_HIDDEN void tsl_part_grow(struct tsl_part *part);

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
