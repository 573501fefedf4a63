#include "upkeep/collect.h"

#include "heap/cells.h"
#include "heap/home_units.h"
#include "heap/mixed.h"
#include "heap/part.h"
#include "heap/rest.h"
#include "heap/slabs.h"
#include "heap/valid.h"
#include "heap/warm.h"
#include "state/change.h"
#include "state/owner.h"
#include "tell/heaps.h"
#include "upkeep/pool.h"

// A slab closes with its last block, but in the hardened build the system may have left its guard.
void tsl_heap_collect(struct tsl_heap *heap) {
  if (!tsl_heap_has_store(heap)) return;
  struct tsl_change change = tsl_change_begin(heap->home);
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  if (TSL_SECURE) tsl_heap_close_empty(heap);
  tsl_change_end(change);
}

// Each step frees what the next ones give back: cells are blocks of the home's slabs, slabs close
// once no block of theirs is hot, and the units of closed slabs come to the home.
void tsl_home_collect(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  tsl_warm_drop(home);
  tsl_cells_look(home, UINT32_MAX);
  tsl_part_visit_shared(home, tsl_mixed_collect);
  tsl_home_rest_all(home);
  struct tsl_change change = tsl_change_begin(home);
  tsl_heap_collect(&home->heap);
  tsl_part_visit_shared(home, tsl_heap_collect);
  tsl_home_units_trim(home, 0);
  tsl_change_end(change);
  tsl_report_heap(&home->heap);
  tsl_invariant(tsl_heap_valid(&home->heap) && tsl_home_valid(home));
}

// Blocks of one home's slabs may lie in the bins of others (HO2): all bins are emptied before slabs
// are collected.
void tsl_heap_collect_all(void) {
  struct tsl_home *home = tsl_heap_current->home;
  bool has_home = home != &tsl_home_empty;
  if (has_home) tsl_home_rest_all(home);
  tsl_pool_visit(tsl_home_rest_all);
  tsl_pool_visit(tsl_home_collect);
  if (has_home) tsl_home_collect(home);
}
