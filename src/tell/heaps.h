// heaps: the rows of heaps and bins in the statistics file. Threads copy the counts of their heaps
// there, on slow paths. No call waits; without a file none has an effect.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "state/heap.h"
#include "tell/rows.h"

// Writes all fields of a heap. Its owner.
TSL_HIDDEN void tsl_report_heap(struct tsl_heap *heap);

// The same for a heap whose thread is about to leave one of its scopes.
TSL_HIDDEN void tsl_report_left(struct tsl_heap *heap);

// Writes one class of a heap that has a store. Its owner.
TSL_HIDDEN void tsl_report_bin(struct tsl_heap *heap, unsigned class);

// Writes only the class's count of allocations, which hot allocations change without changing the
// others. Its owner.
TSL_HIDDEN void tsl_report_allocations(struct tsl_heap *heap, unsigned class);

// Writes the home's count of frees of other homes' blocks. The row may lack the last word of
// blocks. Owner of the home.
TSL_HIDDEN void tsl_report_sent(struct tsl_home *home, unsigned class);

// Writes the counts of a part's cells, while its thread stays in the scope. Its owner.
TSL_HIDDEN void tsl_report_cells(struct tsl_heap *part);

// A part begins: clears its row. Its owner.
TSL_HIDDEN void tsl_report_part(const struct tsl_part *part);

// Writes how many scopes are open in a part whose epoch ends. The thread that ends the epoch.
TSL_HIDDEN void tsl_report_scopes(const struct tsl_part *part);

// A part ends, and its counts have gone to a home (tsl_part_end_tallies). The thread that seals it.
TSL_HIDDEN void tsl_report_sealed(const struct tsl_part *part);

// Prepares the row of a part that ended for its next epoch: its owner reports it there when it
// first leaves a scope, and others may count what they free before. Its owner.
TSL_HIDDEN void tsl_report_warm(const struct tsl_part *part);

// Both of these for a part that was one cell, but that its home's counts of ends stay untold: they
// are told at the next tick, or by the call below. Its owner.
TSL_HIDDEN void tsl_report_rest(const struct tsl_part *part);

// Writes a home's counts of ends. Its owner, who may pass no tick.
TSL_HIDDEN void tsl_report_ends(struct tsl_home *home);

// Counts a block of a part that is not sealed, which was freed by another thread or from outside
// the epoch. Any thread.
TSL_HIDDEN void tsl_report_away(uint32_t part, unsigned class);

// The same for blocks of one class in slabs, where the class counts them, too.
TSL_HIDDEN void tsl_report_away_of_slab(uint32_t part, unsigned class, uint32_t blocks);

// Counts a block of a home that a thread without a heap freed. Any thread.
TSL_HIDDEN void tsl_report_homeless(unsigned class);

// Writes these counts of all classes, once there is a file.
TSL_HIDDEN void tsl_report_all_homeless(void);

// In the child of a fork, whose file has no rows of heaps yet: each heap is reported again.
TSL_HIDDEN void tsl_report_forget_heaps(void);
