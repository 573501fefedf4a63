#include "upkeep/tick.h"

#include "base/bits.h"
#include "heap/cells.h"
#include "heap/count.h"
#include "heap/home_units.h"
#include "heap/loose.h"
#include "heap/mixed.h"
#include "heap/over.h"
#include "heap/part.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "heap/store.h"
#include "heap/visit.h"
#include "heap/warm.h"
#include "memory/purge.h"
#include "state/change.h"
#include "state/owner.h"
#include "tell/heaps.h"
#include "tell/points.h"
#include "tell/request.h"
#include "tell/sample.h"
#include "upkeep/pool.h"
#include "upkeep/remains.h"
#include "upkeep/reports.h"
#include "upkeep/sparse.h"

enum {
  SHARED_LOOKS = 4,  // slabs of a shared epoch that one tick collects
  SHARED_ASKED = 8,  // parts of shared epochs that one tick asks, on average
};

void tsl_heap_follow_samples(struct tsl_heap *heap) {
  tsl_assert(tsl_owner_is_me(heap));
  uint32_t version = tsl_points_version(heap);
  if (tsl_likely(heap->sample_version == version)) return;
  heap->sample_version = version;
  uint64_t apart = tsl_points_apart(heap);
  if (heap->sample_apart == apart) return;
  heap->sample_apart = apart;
  tsl_heap_drain_stocks(heap);
  tsl_mixed_redraw(heap);
  tsl_heap_redraw(heap);
}

// A part in which the thread has no scope is left alone, because another thread may be sealing it.
// It follows when the thread next needs memory there.
void tsl_home_follow_samples(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  uint64_t mean = tsl_load_relaxed(&tsl_points_mean);
  if (tsl_points_are_on()) tsl_points_count(home, 0);
  tsl_heap_follow_samples(&home->heap);
  if (home->own->points.mean == mean) return;
  home->own->points.mean = mean;
  for (uint32_t number = home->family; number != 0; number = tsl_part_at(number)->family_next)
    if (tsl_load_relaxed(&tsl_heap_at(number)->depth) != 0)
      tsl_heap_follow_samples(tsl_heap_at(number));
}

static void shared_tick(struct tsl_heap *heap) {
  tsl_mixed_look(heap);
  if (!tsl_heap_has_store(heap)) return;
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_heap_look_at_ready(heap, SHARED_LOOKS);
  tsl_change_end(change);
  tsl_sparse_step(heap);
  tsl_heap_rest(heap);
}

static bool has_waiting_slabs(uint32_t number) {
  return number != 0 && tsl_heap_has_store(tsl_heap_at(number)) &&
         tsl_sparse_waits(tsl_heap_at(number));
}

// All parts are asked at once, and where they are many not at each tick. Until then a thread that
// is awake stays so, and wakes for the part that this tick looked at.
static bool shared_wait(struct tsl_home *home) {
  struct tsl_home_store *own = home->own;
  if (own->shared_unasked++ < own->shared_count / SHARED_ASKED)
    return home->awake || has_waiting_slabs(own->shared_turn);
  own->shared_unasked = 0;
  uint32_t number = own->shared;
  while (number != 0 && !has_waiting_slabs(number)) number = tsl_part_at(number)->shared_next;
  return number != 0;
}

// Where a helper lives, homes leave this to it. Parts of shared epochs do it, too: a program may
// close more epochs than the helper's share of a processor serves.
static bool sparse_tick(struct tsl_home *home) {
  bool is_tended = tsl_tend_is_possible && tsl_purge_has_helper();
  if (!is_tended) return tsl_sparse_step(&home->heap);
  home->heap.store->sparse.due_ms = tsl_os_now_ms() + TSL_TICK_MS;
  return false;
}

// What the helper does where one lives. True while there is more to give back.
static bool process_tick(void) {
  tsl_remains_step(1);
  tsl_request_tick();
  bool surplus = tsl_purge_tick();
  return surplus || tsl_remains_wait();
}

static bool process_waits(void) {
  return !tsl_purge_has_helper() && (tsl_purge_waits() || tsl_remains_wait());
}

// What follows from the number of refills. Units that the thread did not need since the last time
// go to the unit cache of all threads.
static void refills_tick(struct tsl_home *home) {
  home->ticks = TSL_TICK_REFILLS;
  tsl_visit_tick(home);
  tsl_heap_rest(&home->heap);
  tsl_part_visit_next(home, shared_tick);
  tsl_home_units_trim_unused(home);
  if (!tsl_purge_has_helper()) tsl_pool_look();
  tsl_remains_take(home->taken);
  home->taken = 0;
}

void tsl_home_tick(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  refills_tick(home);
  tsl_warm_look(home);
  tsl_loose_add_warm(home);
  tsl_cells_look(home, TSL_CELLS_FEW);
  tsl_report_tick(home);
  tsl_home_follow_samples(home);
  bool sparse = sparse_tick(home) || shared_wait(home);
  bool more = (!tsl_purge_has_helper() && process_tick()) || sparse;
  if (more) tsl_home_wake(home);
  home->awake = more;
  tsl_over_tell_waiting();
}

// Adapts the pace so that the thread looks at the clock about as often as a tick is due. Looks soon
// after one that was late are those of other classes, which are allocated in turns with its own.
static void home_pace(struct tsl_home *home, uint64_t now_ms, uint64_t due_ms) {
  uint32_t least = home->awake ? TSL_LEAST_PACE : TSL_REST_LEAST_PACE;
  uint32_t most = home->awake ? TSL_MOST_PACE : TSL_REST_MOST_PACE;
  bool is_early = now_ms<due_ms, is_late = now_ms> due_ms + TSL_TICK_MS;
  if (is_early && !home->was_late) home->pace = (uint32_t)tsl_at_most(home->pace * 2, most);
  if (is_late) home->pace = (uint32_t)tsl_at_least(home->pace / 2, least);
  if (!is_early) home->was_late = is_late;
}

static bool samples_wait(const struct tsl_home *home) {
  if (tsl_watch_waits() && tsl_sample_watch_waits()) return true;
  return tsl_sample_waits(home->own->points.mean);
}

// A program in a steady state takes hot blocks only, and never refills. It still comes here, after
// each `pace` allocations of a class: seldom while there is no memory to give back, to find what
// sleeping and ended threads left, and whether it is to sample.
void tsl_heap_recount(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_home *home = heap->home;
  if (tsl_points_are_on()) tsl_heap_follow_samples(heap);
  if (!home->awake) tsl_request_tick();
  if (!home->awake && (process_waits() || samples_wait(home))) tsl_home_wake(home);
  uint64_t now_ms = tsl_os_now_ms(), due_ms = home->heap.store->sparse.due_ms;
  home_pace(home, now_ms, due_ms);
  tsl_heap_count(heap, class);
  tsl_report_allocations(heap, class);
  if (now_ms >= due_ms) tsl_home_tick(home);
}

void tsl_home_refilled(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  bool is_last = --home->ticks == 0;
  if (!is_last && !home->awake) return;
  if (tsl_os_now_ms() < home->heap.store->sparse.due_ms) {
    if (is_last) refills_tick(home);
    return;
  }
  home->was_late = false;
  tsl_home_tick(home);
}
