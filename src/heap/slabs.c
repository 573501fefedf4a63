#include "heap/slabs.h"

#include "base/probe.h"
#include "base/tools.h"
#include "heap/charge.h"
#include "heap/count.h"
#include "heap/extent.h"
#include "heap/home_units.h"
#include "heap/loose.h"
#include "heap/visit.h"
#include "memory/kept.h"
#include "memory/purge.h"
#include "state/bin.h"
#include "state/misuse.h"
#include "state/owner.h"

static void give_units(tsl_unit first, unsigned count) {
  if (!tsl_home_units_give(first, count) || !tsl_purge_tick()) return;
  if (tsl_heap_current != &tsl_home_empty.heap) tsl_home_wake(tsl_heap_current->home);
}

static void map_fill(tsl_unit first, unsigned count, uint32_t entry) {
  for (unsigned i = 0; i < count; i++) tsl_store_relaxed(tsl_map_entry(first + i), entry);
}

static void slabs_add(struct tsl_heap *heap, tsl_unit unit) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_span *span = tsl_span_at(unit);
  tsl_extent_add(heap->epoch, unit);
  tsl_store_relaxed(&span->epoch, heap->epoch);
  span->prev = 0;
  span->next = heap->slabs;
  if (heap->slabs != 0) tsl_span_at(heap->slabs)->prev = unit;
  heap->slabs = unit;
  heap->slab_count++;
}

void tsl_slabs_unlist(struct tsl_heap *heap, tsl_unit unit) {
  tsl_assert(tsl_owner_is_me(heap));
  const struct tsl_span *span = tsl_span_at(unit);
  if (span->next != 0) tsl_span_at(span->next)->prev = span->prev;
  if (span->prev != 0) {
    tsl_span_at(span->prev)->next = span->next;
  } else {
    heap->slabs = span->next;
  }
  heap->slab_count--;
  struct tsl_sparse *sparse = &heap->store->sparse, *tender = &heap->store->tender;
  // A round that would look at this slab next goes on behind it.
  if (sparse->next == unit) sparse->next = span->next;
  if (tender->next == unit) tender->next = span->next;  // C4
}

bool tsl_slabs_have_kept(const struct tsl_slab *slab) {
  uint32_t entry = tsl_load_relaxed(tsl_map_entry(tsl_slab_unit(slab)));
  return (entry & TSL_CODE_KEPT) != 0 && !tsl_owner_is_home(tsl_entry_owner(entry));
}

// Marks the entries of a slab that is not sealed; its heap may seal it meanwhile.
static void entry_mark_kept(size_t unit) {
  uint32_t *entry = tsl_map_entry(unit);
  uint32_t seen = tsl_load_relaxed(entry);
  while (tsl_entry_owner(seen) != TSL_HEAP_SEALED && (seen & TSL_CODE_KEPT) == 0)
    if (tsl_cas_relaxed(entry, &seen, seen | TSL_CODE_KEPT)) return;
}

// The marks come first: they lead the free to where the bit is taken off.
void tsl_slabs_keep(const void *block) {
  unsigned class = tsl_class_around(block);
  size_t first = tsl_slab_unit(tsl_slab_position(class, block).slab);
  for (unsigned i = 0; i < tsl_sizeclasses[class].units; i++) entry_mark_kept(first + i);
  tsl_kept_set(block);  // pairs: kept
}

// A look reads a cold line of each class's last block: for each slab that would be a tenth of the
// time of programs that open many.
static bool bins_are_due(const struct tsl_home *home) {
  return home->opened < TSL_FIRST_OPENINGS || home->opened % TSL_OPENINGS_A_CHECK == 0;
}

// Charges before it takes units, so that an epoch never has what its limit refuses.
struct tsl_slab *tsl_heap_open_slab(struct tsl_heap *heap, unsigned class) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[class];
  if (!tsl_epoch_charge(heap->epoch, sizeclass->slab_bytes)) {
    heap->refused = true;
    return NULL;
  }
  tsl_unit first = tsl_home_units_take(heap->home, sizeclass->units);
  if (first == 0) {
    tsl_epoch_discharge(heap->epoch, sizeclass->slab_bytes);
    return NULL;
  }
  if (bins_are_due(heap->home)) tsl_bin_check_all(heap);
  tsl_tools_begin(tsl_unit_address(first), sizeclass->slab_bytes);
  struct tsl_slab *slab = tsl_slab_open(first, class, heap->life);
  slabs_add(heap, first);
  map_fill(first, sizeclass->units, heap->tag | tsl_class_code(class));
  tsl_stock_list(&heap->store->stocks[class], slab);
  tsl_heap_tally(heap, class)->slabs++;
  tsl_heap_tally(heap, class)->opened++;
  heap->home->taken += sizeclass->units;
  heap->home->opened++;
  TSL_PROBE3(slab_take, tsl_unit_address(first), sizeclass->bytes, heap->epoch);
  return slab;
}

void tsl_heap_renew_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  tsl_unit unit = (tsl_unit)tsl_slab_unit(slab);
  unsigned class = slab->class;
  tsl_slab_clear_remote(slab);
  tsl_slab_open(unit, class, heap->life);
  slabs_add(heap, unit);
  tsl_stock_list(&heap->store->stocks[class], slab);
  tsl_heap_tally(heap, class)->slabs++;
}

struct tsl_sealed tsl_heap_seal_slab(struct tsl_slab *slab, uint32_t holds) {
  uint32_t entry = tsl_entry(TSL_HEAP_SEALED, tsl_class_code(slab->class));
  map_fill((tsl_unit)tsl_slab_unit(slab), tsl_sizeclasses[slab->class].units, entry);
  struct tsl_sealed sealed = tsl_slab_seal(slab, holds);
  if (tsl_unlikely(sealed.twice != NULL)) tsl_misuse_both(sealed.twice);
  return sealed;
}

// The entries go before the units: who takes these writes entries of its own.
void tsl_heap_give_slab(struct tsl_slab *slab) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  tsl_unit first = (tsl_unit)tsl_slab_unit(slab);
  map_fill(first, sizeclass->units, 0);
  tsl_tools_end(tsl_unit_address(first), sizeclass->slab_bytes);
  TSL_PROBE3(slab_give, tsl_unit_address(first), sizeclass->bytes, tsl_span_at(first)->epoch);
  tsl_epoch_discharge(tsl_span_at(first)->epoch, sizeclass->slab_bytes);
  give_units(first, sizeclass->units);
}

// Gives an empty slab's units back. A slab whose guard the system leaves in place stays, and takes
// blocks again.
static void heap_close_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  struct tsl_stock *stock = &heap->store->stocks[slab->class];
  tsl_assert(slab->out == 0);
  bool closed = tsl_slab_close(slab);
  if (closed && slab->listed) tsl_stock_unlist(stock, slab);
  if (!closed && !slab->listed) tsl_stock_list(stock, slab);
  if (!closed) return;
  tsl_heap_tally(heap, slab->class)->slabs--;
  tsl_slabs_unlist(heap, (tsl_unit)tsl_slab_unit(slab));
  tsl_heap_give_slab(slab);
}

void tsl_heap_close_empty(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    for (struct tsl_slab *slab = heap->store->stocks[class].slabs, *next; slab != NULL;
         slab = next) {
      next = slab->next;
      if (slab->out == 0) heap_close_slab(heap, slab);
    }
  }
}

// A slab that was full and has room again may become sparse: the thread's ticks and the helper's
// rounds (RO1) have to look.
void tsl_heap_settle_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  tsl_assert(tsl_owner_is_me(heap));
  if (slab->out == 0) {
    heap_close_slab(heap, slab);
  } else if (!slab->listed && slab->summary != 0) {
    tsl_home_wake(heap->home);
    tsl_store_relaxed(&heap->home->loosened, 1);
    tsl_stock_list(&heap->store->stocks[slab->class], slab);
  }
}

// Takes the mark off before it collects: a block that is freed after that begins a new visit, whose
// mark has to stay.
static void heap_collect_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  tsl_assert(tsl_owner_is_me(heap));
  if (tsl_heap_is_home(heap)) tsl_visit_end(slab);
  struct tsl_tally *tally = tsl_heap_tally(heap, slab->class);
  uint32_t before = slab->out;
  const void *twice = tsl_slab_collect(slab);
  if (tsl_unlikely(twice != NULL)) tsl_misuse_both(twice);
  if (tsl_unlikely(tsl_slabs_have_kept(slab))) tsl_slab_drop_kept(slab);  // KE1
  tally->taken += before - slab->out;
  tally->out -= before - slab->out;
  tsl_loose_collect(slab->class, before - slab->out);
  tsl_loose_add(heap, slab->class, before - slab->out);
}

// Takes the whole stack at a time, and works it off over several calls. It looks before it takes:
// the stack is empty mostly, and an exchange would take its line from the threads that push.
void tsl_heap_look_at_ready(struct tsl_heap *heap, unsigned budget) {
  for (; budget != 0; budget--) {
    if (heap->pending == 0) {
      if ((tsl_unit)tsl_load_relaxed(&heap->ready) == 0) return;
      uint64_t none = (uint64_t)heap->life << 32;
      heap->pending = (tsl_unit)tsl_exchange_acquire(&heap->ready, none);  // pairs: ready
    }
    struct tsl_slab *slab = tsl_slab_at(heap->pending);
    heap->pending = slab->ready_next;
    heap_collect_slab(heap, slab);
    tsl_heap_settle_slab(heap, slab);
  }
}

void tsl_heap_close_ready_slabs(struct tsl_heap *heap, uint64_t none) {
  tsl_unit units[] = {heap->pending,
                      (tsl_unit)tsl_exchange_acquire(&heap->ready, none)};  // pairs: ready
  heap->pending = 0;
  for (unsigned i = 0; i < 2; i++) {
    for (tsl_unit unit = units[i]; unit != 0; unit = tsl_slab_at(unit)->ready_next)
      heap_collect_slab(heap, tsl_slab_at(unit));
  }
}

bool tsl_slabs_valid(const struct tsl_heap *heap) {
  uint32_t count = 0;
  tsl_unit before = 0;
  for (tsl_unit unit = heap->slabs; unit != 0; before = unit, unit = tsl_span_at(unit)->next) {
    if (tsl_span_at(unit)->prev != before || tsl_span_at(unit)->epoch != heap->epoch) return false;
    if (!tsl_extent_has(heap->epoch, unit)) return false;  // X1
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit)) & ~(uint32_t)TSL_CODE_VISITED;
    if (entry != (heap->tag | tsl_class_code(tsl_slab_at(unit)->class))) return false;
    count++;
  }
  return count == heap->slab_count;
}
