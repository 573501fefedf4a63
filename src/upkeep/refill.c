#include "upkeep/refill.h"

#include "heap/freed.h"
#include "heap/handful.h"
#include "heap/mixed.h"
#include "heap/sampled.h"
#include "state/bin.h"
#include "tell/points.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

// Allocates a sampled block instead of `block`, which goes back on its bin. `block` itself when
// there is no cell for it.
static void *sample_instead(struct tsl_heap *heap, unsigned class, uint64_t apart, void *block) {
  void *sampled = tsl_sampled_small(heap, class, apart);
  if (sampled == NULL) return block;
  heap->store->allocations[class]--;  // of the block that the program does not get
  tsl_heap_push(heap, class, block);
  return sampled;
}

// The rest of an allocation at which the counters were due; it may also be the one that holds the
// sample point.
static void *heap_counted(struct tsl_heap *heap, unsigned class, void *block) {
  bool is_sampled = (heap->store->sampled_hot >> class % 64 & 1) != 0 && class < TSL_CLASSES;
  uint64_t apart = heap->sample_apart;  // the look at the counters may change it
  tsl_heap_recount(heap, class);
  return tsl_unlikely(is_sampled) ? sample_instead(heap, class, apart, block) : block;
}

// A heap that has drawn nothing yet does so now: otherwise its first block could hold no point.
static void first_points(struct tsl_heap *heap) {
  if (tsl_points_are_on() && heap->sample_apart == 0) tsl_heap_follow_samples(heap);
}

static void *heap_refill(struct tsl_heap *heap, unsigned class, uint64_t cut_apart) {
  if (heap->epoch != 0) tsl_report_start();  // the first memory of an epoch makes the file
  tsl_report_at_refill();
  first_points(heap);
  heap->refused = false;
  void *block = tsl_mixed_refill(heap, class);
  if (block != NULL || heap->refused) return block;  // a slab, no smaller, would be refused, too
  uint32_t sampled = 0;  // known before the handful is taken: it is cut there
  if (tsl_points_are_on()) block = tsl_sampled_handful(heap, class, cut_apart, &sampled);
  return block != NULL ? block : tsl_heap_take_handful(heap, class, sampled);
}

// The tick comes before all else: no change is on yet, so that it may run the program's callbacks
// (over.h), which may end what the epoch holds, and this refill can take what it puts back in
// slabs. It may also draw all points anew: the one that this refill has reached is taken before.
void *tsl_heap_refill(struct tsl_heap *heap, unsigned class) {
  uint64_t cut_apart = tsl_points_are_on() ? tsl_points_take_cut(heap, class) : 0;
  tsl_home_refilled(heap->home);
  void *block = heap_refill(heap, class, cut_apart);
  // Not before: the points that this refill met stand for what was known when they were drawn.
  if (tsl_points_are_on()) tsl_heap_follow_samples(heap);
  return block;
}

void *tsl_heap_pop_sampled(struct tsl_heap *heap, unsigned class) {
  bool is_due = false;
  void *block = tsl_bin_take(heap, class, &is_due);
  if (block == NULL) return tsl_heap_pop(heap, class);
  return is_due ? heap_counted(heap, class, block) : block;
}

void *tsl_heap_pop(struct tsl_heap *heap, unsigned class) {
  bool is_due = false;
  void *block = tsl_bin_take(heap, class, &is_due);
  if (is_due) tsl_heap_recount(heap, class);
  return block != NULL ? block : tsl_heap_pop_cold(heap, class);
}
