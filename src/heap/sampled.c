#include "heap/sampled.h"

#include "heap/cells.h"
#include "state/owner.h"
#include "tell/sample.h"

// P1: the block has a cell to itself.
void *tsl_sampled_small(struct tsl_heap *heap, unsigned class, uint64_t apart) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!tsl_points_take(heap, class, apart)) return NULL;
  size_t bytes = tsl_sizeclasses[class].bytes;
  uint32_t samples = tsl_points_reached(heap, bytes, apart);
  void *block = tsl_cells_alone(heap, class);
  if (block == NULL) return NULL;
  tsl_cell_number number = tsl_cells_of(block);
  uint32_t sample = tsl_sample_begin(heap, block, bytes, class, samples);
  tsl_store_relaxed(&tsl_cell_at(number)->sample, sample);
  return block;
}

// When there is no cell for the first block, a point is drawn among the blocks behind it.
void *tsl_sampled_handful(struct tsl_heap *heap, unsigned class, uint32_t *turn) {
  tsl_assert(tsl_owner_is_me(heap));
  *turn = tsl_points_in_handful(heap, class);
  if (*turn != 1) return NULL;
  void *block = tsl_sampled_small(heap, class, heap->sample_apart);
  if (block != NULL) return block;
  uint32_t behind = tsl_points_next(heap, class, TSL_HANDFUL - 1);
  *turn = behind == 0 ? 0 : behind + 1;
  return NULL;
}
