#include "heap/count.h"

#include "base/bits.h"
#include "heap/store.h"
#include "state/bin.h"
#include "state/owner.h"
#include "tell/points.h"

void tsl_heap_count(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  uint32_t *until = &heap->bins[class].until;
  uint32_t next = heap->home->pace;
  if (tsl_points_are_on()) next = tsl_points_until(heap, class, next);
  uint32_t before = tsl_bin_ahead(&heap->bins[class]);
  heap->store->allocations[class] += (uint64_t)next - before;
  heap->store->seen[class] += next - before;
  *until += next - before;
}

static void heap_count_all(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) tsl_heap_count(heap, class);
}

void tsl_heap_redraw(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!tsl_heap_has_store(heap)) return;
  heap->store->sampled_hot = 0;
  heap_count_all(heap);
}

void tsl_home_forget_pace(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  home->pace = (uint32_t)tsl_at_most(home->pace, TSL_REST_LEAST_PACE);
  heap_count_all(&home->heap);
}

void tsl_home_wake_up(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  home->awake = true;
  home->pace = TSL_MOST_PACE;
  home->heap.store->sparse.round_waits = true;
  heap_count_all(&home->heap);
  struct tsl_heap *current = tsl_heap_current;
  bool is_part = current != &home->heap && current->home == home;
  if (is_part && tsl_heap_has_store(current)) heap_count_all(current);
}
