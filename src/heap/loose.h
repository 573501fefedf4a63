// loose: the bytes that became free in the slabs and cells of a home and of its parts since the
// helper last looked at them, and those of its warm parts. The sum over all homes decides whether a
// helper is worth its thread. So do bytes that threads freed in memory of others, or of their own
// from outside of its epoch, and no owner has collected.
#pragma once

#include "state/heap.h"

// So many blocks of a class came back to slabs of the heap. No effect where the thread acts for the
// owner of a part. Owner only.
TSL_HIDDEN void tsl_loose_add(struct tsl_heap *heap, unsigned class, uint32_t blocks);

// What the thread freed in cells of its heap is told in pieces of 16 KiB: as it frees in older
// cells, and as it leaves a scope. Owner only.
enum { TSL_LOOSE_GRANULES = 1 << 10 };
TSL_HIDDEN void tsl_loose_add_cells(struct tsl_heap *heap);

// The granules that it has freed there, which only grow until the part ends; whether there is a
// piece of them in older cells; and the look of a thread that leaves a scope.
static inline uint64_t tsl_loose_freed(const struct tsl_heap *mine) {
  return mine->freed_granules + tsl_cell_shares_granules(mine->cell_freed);
}
static inline bool tsl_loose_has_piece(const struct tsl_heap *mine) {
  return (int64_t)(mine->freed_granules - mine->loose_granules) >= TSL_LOOSE_GRANULES;
}
static inline void tsl_loose_leave(struct tsl_heap *mine) {
  bool has_piece = tsl_loose_freed(mine) - mine->loose_granules >= TSL_LOOSE_GRANULES;
  if (tsl_unlikely(has_piece)) tsl_loose_add_cells(mine);
}

// The thread freed so many blocks of a class in slabs of the heap `owner`, in which it is not, or
// one in a cell; or it collected so many that others freed, or so many bytes, which of a cell are
// reckoned by the mean of its blocks. A helper may be born meanwhile, for which the C library
// allocates and frees. Any thread, for itself.
TSL_HIDDEN void tsl_loose_send(uint32_t owner, unsigned class, unsigned blocks);
TSL_HIDDEN void tsl_loose_send_in_cell(uint32_t owner, unsigned class);
TSL_HIDDEN void tsl_loose_collect(unsigned class, unsigned blocks);
TSL_HIDDEN void tsl_loose_collect_bytes(size_t bytes);

// The thread keeps parts warm (warm.h): the helper takes them once it sleeps. Owner only, at ticks.
TSL_HIDDEN void tsl_loose_add_warm(struct tsl_home *home);

// The thread ends: what is hot in its home is as good as free. Owner only.
TSL_HIDDEN void tsl_loose_add_hot(struct tsl_home *home);

// The home's bytes count no longer: the helper looks at them now. Any thread.
TSL_HIDDEN void tsl_loose_take(struct tsl_home *home);
