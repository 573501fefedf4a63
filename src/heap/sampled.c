#include "heap/sampled.h"

#include "base/bits.h"
#include "heap/cells.h"
#include "state/change.h"
#include "state/owner.h"
#include "tell/sample.h"

// Larger sampled blocks have a cell each.
enum { TOGETHER_BYTES = 1 << 10 };

// Where a block can lie in a cell with others, behind a granule for its sample's number; 0: there
// is no room.
static uintptr_t place_behind(tsl_cell_number number, size_t bytes, size_t alignment) {
  uintptr_t start = tsl_cell_address(number);
  size_t granules = tsl_cell_at(number)->granules + 1u;
  uintptr_t block = tsl_round_up(start + (granules << TSL_GRANULE_LOG2), alignment);
  return block + bytes <= start + tsl_sizeclasses[TSL_CELL_4K].bytes ? block : 0;
}

// Whether the heap may hand out blocks of this cell. It may have gone back meanwhile, and be
// anything.
static bool takes_more(const struct tsl_heap *heap, tsl_cell_number number) {
  const struct tsl_cell *cell = tsl_cell_at(number);
  bool is_own = number != 0 && tsl_load_relaxed(&cell->heap) == heap->number;
  return is_own && tsl_load_relaxed(&cell->sample) == TSL_CELL_SAMPLES;
}

static void *alloc_together(struct tsl_heap *heap, unsigned class, size_t alignment) {
  tsl_cell_number *cell = &heap->home->own->samples[heap->number % TSL_HOME_SAMPLES];
  size_t bytes = tsl_sizeclasses[class].bytes;
  uintptr_t block = takes_more(heap, *cell) ? place_behind(*cell, bytes, alignment) : 0;
  if (block == 0) {
    *cell = tsl_cells_take_apart(heap, TSL_CELL_4K);
    if (*cell == 0) return NULL;
    tsl_store_relaxed(&tsl_cell_at(*cell)->sample, TSL_CELL_SAMPLES);
    block = place_behind(*cell, bytes, alignment);
  }
  tsl_cells_hand_out(heap, *cell, block, class);
  return (void *)block;
}

static void *alloc_alone(struct tsl_heap *heap, unsigned class) {
  unsigned cell_class = TSL_CELL_4K;
  while (cell_class < TSL_BINS && tsl_sizeclasses[cell_class].bytes < tsl_sizeclasses[class].bytes)
    cell_class += 1;
  tsl_cell_number cell = cell_class == TSL_BINS ? 0 : tsl_cells_take_apart(heap, cell_class);
  if (cell == 0) return NULL;
  tsl_cells_hand_out(heap, cell, tsl_cell_address(cell), class);
  return (void *)tsl_cell_address(cell);
}

// P1. Where a limit refuses the cell, the block is not sampled: it may still fit elsewhere.
static void *alloc_apart(struct tsl_heap *heap, unsigned class, size_t alignment) {
  bool is_small = tsl_sizeclasses[class].bytes <= TOGETHER_BYTES && alignment <= TOGETHER_BYTES;
  struct tsl_change change = tsl_change_begin(heap->home);
  void *block = is_small ? alloc_together(heap, class, alignment) : alloc_alone(heap, class);
  tsl_change_end(change);
  heap->refused = false;
  return block;
}

void *tsl_sampled_aligned(struct tsl_heap *heap, unsigned class, uint64_t apart, size_t alignment) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!tsl_points_take(heap, class, apart)) return NULL;
  size_t bytes = tsl_sizeclasses[class].bytes;
  uint32_t samples = tsl_points_reached(heap, bytes, apart);
  void *block = alloc_apart(heap, class, alignment);
  if (block == NULL) return NULL;
  uint32_t sample = tsl_sample_begin(heap, block, bytes, class, samples);
  tsl_store_relaxed(tsl_cell_sample_of(tsl_cells_of(block), block), sample);
  return block;
}

// As in a slab, which begins at a multiple of its length.
void *tsl_sampled_small(struct tsl_heap *heap, unsigned class, uint64_t apart) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  return tsl_sampled_aligned(heap, class, apart, bytes & (0 - bytes));
}

// When there is no cell for the first block, a point is drawn among the blocks behind it.
void *tsl_sampled_handful(struct tsl_heap *heap, unsigned class, uint64_t cut_apart,
                          uint32_t *turn) {
  tsl_assert(tsl_owner_is_me(heap));
  *turn = cut_apart != 0 ? 1 : tsl_points_next(heap, class, TSL_HANDFUL);
  if (*turn != 1) return NULL;
  void *block = tsl_sampled_small(heap, class, cut_apart != 0 ? cut_apart : heap->sample_apart);
  if (block != NULL) return block;
  uint32_t behind = tsl_points_next(heap, class, TSL_HANDFUL - 1);
  *turn = behind == 0 ? 0 : behind + 1;
  return NULL;
}
