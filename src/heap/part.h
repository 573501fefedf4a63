// part: a thread's heap in a declared epoch. It comes into use with the thread's first scope there,
// and can serve another epoch once it was sealed.
#pragma once

#include "state/heap.h"

// A heap for an epoch, without cells or slabs: one that was sealed before, or a new one. NULL when
// memory is out. The home's owner only.
TSL_HIDDEN struct tsl_part *tsl_part_take(struct tsl_home *home, uint32_t epoch);

// Begins a part's stay in an epoch: from now on it may be entered and sealed. Its home's owner.
TSL_HIDDEN void tsl_part_begin(struct tsl_part *part, uint32_t epoch);

// Begins the counts of a part anew, once they have gone to a home. The thread that resets it.
TSL_HIDDEN void tsl_part_renew(struct tsl_part *part);

// Adds a part's counts to its epoch and to the home of the thread that ends it, so that no total of
// the process ever falls. The part's stocks are empty by then. The thread that seals it.
TSL_HIDDEN void tsl_part_end_tallies(const struct tsl_part *part);

// Takes back a heap that is empty and belongs to no epoch any more. Any thread.
TSL_HIDDEN void tsl_part_give(struct tsl_part *part);

// PA3: whether the part has nothing of an epoch's any more. Its owner.
TSL_HIDDEN bool tsl_part_is_empty(const struct tsl_part *part);

// HO1, HO3. Its owner.
TSL_HIDDEN bool tsl_home_valid(const struct tsl_home *home);

// The part is one of a shared epoch, which never ends: the thread's ticks look after it from now
// on. Owner only.
TSL_HIDDEN void tsl_part_share(struct tsl_part *part);

// The thread's part of a shared epoch, by its slot; 0 when it has none yet. Owner only.
TSL_HIDDEN uint32_t tsl_part_find_shared(const struct tsl_home *home, uint32_t slot);

// Calls `visit` for a heap of the thread's that nobody seals. It is entered meanwhile, so that the
// child of a fork mends it. Owner only.
TSL_HIDDEN void tsl_part_visit_inside(struct tsl_heap *heap, void (*visit)(struct tsl_heap *));

// The same for each such part of a home, or for the one whose turn it is.
TSL_HIDDEN void tsl_part_visit_shared(struct tsl_home *home, void (*visit)(struct tsl_heap *));
TSL_HIDDEN void tsl_part_visit_next(struct tsl_home *home, void (*visit)(struct tsl_heap *));

// Whether the thread has many parts of the label in use, and the label's history is known
// (history.h): what each part has at hand adds up. Owner only.
TSL_HIDDEN bool tsl_part_has_many_like(const struct tsl_part *part);

// Decrements `holds`; the call that brings it to zero gives the part back. Any thread.
TSL_HIDDEN void tsl_part_let_go(struct tsl_part *part);
