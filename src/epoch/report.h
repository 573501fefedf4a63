// report: what heaps and epochs tell outside tools: copies of their own counts in the rows of the
// statistics file, made on slow paths by who owns the counts. Nobody waits here; without a file
// nothing happens.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "epoch/heap.h"
#include "epoch/rows.h"

TSL_ALWAYS_INLINE bool tsl_report_is_on(void) {
  return tsl_load_relaxed(&tsl_mirror_tables[TSL_ROWS_heaps].ready) != 0;
}

// Makes the file, unless option `stats` is off or it was tried before.
TSL_HIDDEN void tsl_report_start(void);

// From time to time, by a home heap's thread: the heap and the process; makes the file once the
// process has lived for option `stats_delay_ms`.
TSL_HIDDEN void tsl_report_tick(struct tsl_heap *home);

// All of a heap. Its owner.
TSL_HIDDEN void tsl_report_heap(struct tsl_heap *heap);

// The same of a heap whose thread is about to leave one of its scopes.
TSL_HIDDEN void tsl_report_left(struct tsl_heap *heap);

// One class of a heap that has a store. Its owner.
TSL_HIDDEN void tsl_report_bin(struct tsl_heap *heap, unsigned class);

// Its allocations alone, of which hot blocks make many. Its owner.
TSL_HIDDEN void tsl_report_allocations(struct tsl_heap *heap, unsigned class);

// What the thread freed for others, which is at most a word of blocks behind. Its home.
TSL_HIDDEN void tsl_report_sent(struct tsl_heap *home, unsigned class);

// Its cells, while its thread stays in the scope. Its owner.
TSL_HIDDEN void tsl_report_cells(struct tsl_heap *part);

// A part begins: it holds nothing yet.
TSL_HIDDEN void tsl_report_part(const struct tsl_heap *part);

// Its epoch ends, perhaps with somebody inside. Who ends it.
TSL_HIDDEN void tsl_report_scopes(const struct tsl_heap *part);

// A part ends.
TSL_HIDDEN void tsl_report_sealed(const struct tsl_heap *part);

// A heap of which nothing was told: no cell lies there.
#define TSL_NEVER_TOLD UINTPTR_MAX

// Whether what a heap says may have changed since it was last told: what leaving a scope looks at.
// Homes speak at their ticks.
TSL_ALWAYS_INLINE bool tsl_report_is_due(const struct tsl_heap *heap) {
  if (heap->cell_next != heap->told_next || heap->cell_freed != heap->told_freed) return true;
  return heap->store != &tsl_store_empty && heap->epoch != 0;
}

// An epoch holds so many bytes now. Any thread; of two that come at once the later one is right
// only most of the time, and all of it is told again when the epoch ends.
TSL_HIDDEN void tsl_report_held(uint32_t slot, size_t bytes);

// Its large blocks. Under their lock.
TSL_HIDDEN void tsl_report_large(uint32_t slot);

// Those of the process. Any thread.
TSL_HIDDEN void tsl_report_all_large(void);

// It was closed or released; it is over.
TSL_HIDDEN void tsl_report_ended(uint32_t slot);
TSL_HIDDEN void tsl_report_over(uint32_t slot);

// So many blocks of each class survive in a part that is being sealed. Any thread.
TSL_HIDDEN void tsl_report_survivors(uint32_t slot, const uint32_t *counts);

// One of them was freed.
TSL_HIDDEN void tsl_report_survivor_freed(uint32_t slot, unsigned class);

// A block of a part that is not sealed was freed by another thread, or from outside the epoch.
TSL_HIDDEN void tsl_report_away(uint32_t part, unsigned class);

// A thread without a heap freed a block of somebody's home.
TSL_HIDDEN void tsl_report_homeless(unsigned class);

// The child of a fork has a file of its own.
TSL_HIDDEN void tsl_report_after_fork(void);
