// aligned: a slab begins at a multiple of 64 KiB, and its blocks lie at multiples of their size. So
// up to a page any class serves whose size is a multiple of the alignment. Above that a large block
// is taken, which begins at a unit; units can be had at any alignment.
#include "alloc/aligned.h"

#include <errno.h>

#include "alloc/guarded.h"
#include "alloc/malloc.h"
#include "heap/mixed.h"
#include "slab/canary.h"
#include "tell/sample.h"
#include "upkeep/refill.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum { SLAB_ALIGNMENT_LIMIT = 4096 };

// The smallest class that holds `bytes` at multiples of `alignment`; TSL_CLASSES when there is
// none.
static unsigned aligned_class(size_t alignment, size_t bytes) {
  if (alignment > SLAB_ALIGNMENT_LIMIT || bytes > TSL_CANARY_LIMIT) return TSL_CLASSES;
  unsigned class = tsl_sizeclass_of((bytes == 0 ? 1 : bytes) + TSL_CANARY_BYTES);
  while (class < TSL_CLASSES && tsl_sizeclasses[class].bytes % alignment != 0) class += 1;
  return class;
}

// Blocks of cells lie at multiples of 16, so a declared epoch needs a gap in its cell, or a slab.
static void *aligned_in_epoch(struct tsl_heap *heap, unsigned class, size_t alignment) {
  tsl_report_start();
  if (tsl_points_are_on() && heap->sample_apart == 0) tsl_heap_follow_samples(heap);
  heap->refused = false;
  void *block = tsl_mixed_aligned(heap, class, alignment);
  if (block == NULL && !heap->refused) block = tsl_heap_pop(heap, class);
  if (block == NULL && !heap->refused) {
    tsl_memory_regain();
    block = tsl_heap_pop(heap, class);
  }
  if (tsl_points_are_on()) tsl_heap_follow_samples(heap);
  if (block == NULL) errno = ENOMEM;
  return block;
}

void *tsl_aligned(size_t alignment, size_t bytes) {
  void *nothing = tsl_malloc_nothing(bytes, alignment);
  if (nothing != NULL) return nothing;
  unsigned class = aligned_class(alignment, bytes);
  if (class < TSL_CLASSES && tsl_heap_current->epoch != 0)
    return tsl_guard(aligned_in_epoch(tsl_heap_current, class, alignment), class, bytes);
  if (class < TSL_CLASSES) return tsl_guard(tsl_malloc_class(class), class, bytes);
  return tsl_malloc_large(bytes, alignment, NULL);
}
