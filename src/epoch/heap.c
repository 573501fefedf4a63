#include "epoch/heap.h"

#include "base/atomic.h"
#include "base/check.h"
#include "base/probe.h"
#include "epoch/epoch.h"
#include "epoch/home_units.h"
#include "epoch/misuse.h"
#include "epoch/mixed.h"
#include "epoch/neighbours.h"
#include "epoch/pool.h"
#include "epoch/quarantine.h"
#include "epoch/remains.h"
#include "epoch/remote.h"
#include "epoch/report.h"
#include "epoch/sample.h"
#include "epoch/sparse.h"
#include "epoch/store.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "os/os.h"
#include "slab/canary.h"

enum {
  COLLECT_BUDGET = 4,  // slabs that one refill looks at
  MOST_PACE = 512,     // hot allocations of a class between two looks at the clock
  LEAST_PACE = 16,
  REST_LOOKS = 8,    // classes that one such look considers
  REST_BLOCKS = 64,  // and blocks that it gives back
};

TSL_RELRO struct tsl_store tsl_store_empty = {
    .stocks =
        {
#define TINY(least, bytes) [TSL_CLASS_OF_##bytes] = {.block_bytes = (bytes)},
#define MEDIUM(bytes, units) [TSL_CLASS_OF_##bytes] = {.block_bytes = (bytes)},
#include "slab/sizeclass.def"
#undef TINY
#undef MEDIUM
        },
};

// No unit is ever cached here.
TSL_RELRO struct tsl_heap tsl_heap_empty = {
    .bins = {[0 ... TSL_BINS - 1] = {.head = &tsl_bin_end}},
    .store = &tsl_store_empty,
    .home = &tsl_heap_empty,
    .tag = (uint32_t)TSL_HEAP_NOBODY << TSL_CODE_BITS,
    .number = TSL_HEAP_NOBODY,
    .unit_count = UINT32_MAX,
    .slot_count = TSL_HEAP_SLOTS,
};

TSL_TLS struct tsl_heap *tsl_heap_current = &tsl_heap_empty;

static struct tsl_tally *heap_tally(struct tsl_heap *heap, unsigned class) {
  return &heap->store->tallies[class];
}

// Sets the number of allocations until the next look, and keeps their total.
static void heap_count(struct tsl_heap *heap, unsigned class) {
  uint32_t *until = &heap->bins[class].until;
  uint32_t next = heap->home->awake ? heap->home->pace : TSL_SELDOM_COUNT;
  if (tsl_sample_is_on()) next = tsl_sample_until(heap, class, next);
  uint32_t before = tsl_bin_until(&heap->bins[class]);
  heap->store->allocations[class] += (uint64_t)next - before;
  heap->store->seen[class] += next - before;
  *until += next - before;
}

static void heap_count_all(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) heap_count(heap, class);
}

void tsl_heap_redraw(struct tsl_heap *heap) {
  if (!tsl_heap_has_store(heap)) return;
  heap->store->sampled_hot = 0;
  heap->store->sampled_cold = 0;
  heap_count_all(heap);
}

// A part that the thread is not in may be being sealed by another: its points stay as they were
// drawn, which is without any, or one too many.
void tsl_heap_follow_samples(struct tsl_heap *home) {
  if (tsl_sample_is_on()) tsl_sample_look(home);
  if (home->sampling == tsl_sample_is_on()) return;
  home->sampling = !home->sampling;
  tsl_heap_redraw(home);
  for (uint32_t number = home->family; number != 0; number = tsl_heap_at(number)->family)
    if (tsl_load_relaxed(&tsl_heap_at(number)->depth) != 0) tsl_heap_redraw(tsl_heap_at(number));
}

// There may be memory to give back soon.
static void heap_wake(struct tsl_heap *home) {
  if (home->awake) return;
  home->awake = true;
  home->pace = MOST_PACE;
  home->store->round_waits = true;
  heap_count_all(home);
}

static void give_units(tsl_unit first, unsigned count) {
  if (!tsl_home_units_give(first, count) || !tsl_purge_tick()) return;
  if (tsl_heap_current != &tsl_heap_empty) heap_wake(tsl_heap_current->home);
}

static void map_fill(tsl_unit first, unsigned count, uint32_t entry) {
  for (unsigned i = 0; i < count; i++) tsl_store_relaxed(tsl_map_entry(first + i), entry);
}

static void slabs_add(struct tsl_heap *heap, tsl_unit unit) {
  struct tsl_span *span = tsl_span_at(unit);
  tsl_store_relaxed(&span->epoch, heap->epoch);
  span->prev = 0;
  span->next = heap->slabs;
  if (heap->slabs != 0) tsl_span_at(heap->slabs)->prev = unit;
  heap->slabs = unit;
  heap->slab_count++;
}

static void slabs_remove(struct tsl_heap *heap, tsl_unit unit) {
  const struct tsl_span *span = tsl_span_at(unit);
  if (span->next != 0) tsl_span_at(span->next)->prev = span->prev;
  if (span->prev != 0) {
    tsl_span_at(span->prev)->next = span->next;
  } else {
    heap->slabs = span->next;
  }
  heap->slab_count--;
  if (heap->store->sparse_next == unit) heap->store->sparse_next = span->next;
}

static struct tsl_slab *heap_open_slab(struct tsl_heap *heap, unsigned class) {
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
  tsl_bin_check_all(heap);
  struct tsl_slab *slab = tsl_slab_open(first, class, heap->life);
  slabs_add(heap, first);
  map_fill(first, sizeclass->units, heap->tag | class * 2);
  tsl_stock_list(&heap->store->stocks[class], slab);
  heap_tally(heap, class)->slabs++;
  heap_tally(heap, class)->opened++;
  TSL_PROBE3(slab_take, tsl_unit_address(first), sizeclass->bytes, heap->epoch);
  return slab;
}

void tsl_heap_give_slab(struct tsl_slab *slab) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  tsl_unit first = (tsl_unit)tsl_slab_unit(slab);
  map_fill(first, sizeclass->units, 0);
  TSL_PROBE3(slab_give, tsl_unit_address(first), sizeclass->bytes, tsl_span_at(first)->epoch);
  tsl_epoch_discharge(tsl_span_at(first)->epoch, sizeclass->slab_bytes);
  give_units(first, sizeclass->units);
}

// An empty slab's units go back; one whose guard stays stays with it, ready for more blocks.
static void heap_close_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  struct tsl_stock *stock = &heap->store->stocks[slab->class];
  tsl_assert(slab->out == 0);
  bool closed = tsl_slab_close(slab);
  if (closed && slab->listed) tsl_stock_unlist(stock, slab);
  if (!closed && !slab->listed) tsl_stock_list(stock, slab);
  if (!closed) return;
  heap_tally(heap, slab->class)->slabs--;
  slabs_remove(heap, (tsl_unit)tsl_slab_unit(slab));
  tsl_heap_give_slab(slab);
}

// A slab got blocks back.
static void heap_settle_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  if (slab->out == 0) {
    heap_close_slab(heap, slab);
  } else if (!slab->listed && slab->summary != 0) {
    heap_wake(heap->home);
    tsl_stock_list(&heap->store->stocks[slab->class], slab);
  }
}

// The next block that arrives makes it a visited one again; one that waits in a gather does not.
static void slab_end_visit(const struct tsl_slab *slab) {
  uint32_t *entry = tsl_map_entry(tsl_slab_unit(slab));
  uint32_t visited = tsl_load_relaxed(entry);
  if ((visited & TSL_CODE_VISITED) != 0) tsl_store_relaxed(entry, visited ^ TSL_CODE_VISITED);
}

static void heap_collect_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  slab_end_visit(slab);
  struct tsl_tally *tally = heap_tally(heap, slab->class);
  uint32_t before = slab->out;
  const void *twice = tsl_slab_collect(slab);
  if (tsl_unlikely(twice != NULL)) tsl_misuse_both(twice);
  tally->taken += before - slab->out;
  tally->out -= before - slab->out;
}

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
    heap_settle_slab(heap, slab);
  }
}

void tsl_heap_close_ready(struct tsl_heap *heap) {
  uint64_t none = (uint64_t)++heap->life << 32;
  tsl_unit units[] = {heap->pending,
                      (tsl_unit)tsl_exchange_acquire(&heap->ready, none)};  // pairs: ready
  heap->pending = 0;
  for (unsigned i = 0; i < 2; i++) {
    for (tsl_unit unit = units[i]; unit != 0; unit = tsl_slab_at(unit)->ready_next)
      heap_collect_slab(heap, tsl_slab_at(unit));
  }
}

// The last block of a bin stays there for the fast path's sake, until nothing else is left.
static void *bin_take_last(struct tsl_heap *heap, unsigned class) {
  void *block = tsl_bin_pop(heap, class);
  if (block != NULL) heap->store->allocations[class]++;
  return block;
}

TSL_NOINLINE static void heap_tell(struct tsl_heap *heap, unsigned class) {
  tsl_tally_tell(heap_tally(heap, class), class);
  tsl_report_bin(heap, class);
}

// The slab's lists and the caches are touched between the two stores only: see epoch/orphans.h.
TSL_NOINLINE static void heap_settle(struct tsl_heap *heap, struct tsl_slab *slab) {
  uint8_t inside = heap->home->inside;
  tsl_store_relaxed(&heap->home->inside, 1);
  unsigned class = slab->class;
  heap_settle_slab(heap, slab);
  tsl_store_relaxed(&heap->home->inside, inside);
  heap_tell(heap, class);
}

// The first block that comes back to a slab without room.
TSL_NOINLINE static void heap_put_unlisted(struct tsl_heap *heap, struct tsl_place place,
                                           const void *block) {
  uint8_t inside = heap->home->inside;
  tsl_store_relaxed(&heap->home->inside, 1);
  unsigned class = place.slab->class;
  bool done = tsl_slab_put(place.slab, (unsigned)place.index);
  if (done) heap_tally(heap, class)->out--;
  if (done) heap_settle_slab(heap, place.slab);
  tsl_store_relaxed(&heap->home->inside, inside);
  if (!done) return tsl_misuse_twice(block);
  tsl_report_bin(heap, class);
}

TSL_ALWAYS_INLINE void heap_put_at(struct tsl_heap *heap, unsigned class, struct tsl_place place,
                                   void *block) {
  if (tsl_unlikely(place.slab->summary == 0)) return heap_put_unlisted(heap, place, block);
  if (tsl_unlikely(!tsl_slab_put(place.slab, (unsigned)place.index)))
    return tsl_misuse_twice(block);
  bool is_due = TSL_DECREMENT_IS_ZERO(heap_tally(heap, class)->untold);
  if (tsl_unlikely(place.slab->out == 0)) return heap_settle(heap, place.slab);
  if (tsl_unlikely(is_due)) heap_tell(heap, class);
}

TSL_ALWAYS_INLINE void heap_put(struct tsl_heap *heap, unsigned class, void *block) {
  struct tsl_place place = tsl_slab_place(class, block);
  if (tsl_unlikely(place.index < 0)) return tsl_misuse_interior(block);
  heap_put_at(heap, class, place, block);
}

static unsigned block_class(const void *block) { return tsl_entry_code(tsl_map_lookup(block)) / 2; }

// What the program wrote to a block that waited is told, and goes no further.
static void heap_end_quarantine(struct tsl_heap *heap, void *block) {
  tsl_quarantine_check(block, tsl_sizeclasses[block_class(block)].bytes);
  heap_put(heap, block_class(block), block);
}

// The block waits in the quarantine; the one that has waited longest becomes free.
static void heap_quarantine(struct tsl_heap *heap, unsigned class, void *block) {
  struct tsl_place place = tsl_slab_place(class, block);
  if (place.index < 0) return tsl_misuse_interior(block);
  if (tsl_slab_has(place) || tsl_stock_has(&heap->store->stocks[class], block) ||
      tsl_quarantine_has(block))
    return tsl_misuse_twice(block);
  tsl_neighbours_check(heap, class, place);
  if (tsl_canary_has(block) && !tsl_canary_is_whole(block, class)) tsl_misuse_overflow(block);
  tsl_secure_wipe(block, tsl_sizeclasses[class].bytes);
  void *oldest = tsl_quarantine_swap(heap, class, block);
  if (oldest != NULL) heap_end_quarantine(heap, oldest);
  tsl_report_bin(heap, class);
}

void tsl_heap_put(struct tsl_heap *heap, unsigned class, void *block) {
  if (TSL_SECURE) return heap_quarantine(heap, class, block);
  heap_put(heap, class, block);
}

TSL_ALWAYS_INLINE void heap_put_hot(struct tsl_heap *heap, unsigned class, void *block) {
  if (tsl_unlikely(block == heap->bins[class].head)) return tsl_misuse_twice(block);
  if (tsl_heap_room(heap, class) <= 0) return heap_put(heap, class, block);
  tsl_bin_push(heap, class, block);
}

void tsl_heap_put_full(struct tsl_heap *heap, void *block, size_t code) {
  unsigned class = (unsigned)(code / 2);
  heap->bins[class].room++;
  if (TSL_SECURE) return heap_quarantine(heap, class, block);
  heap_put_hot(heap, class, block);
}

void tsl_heap_put_visited(struct tsl_heap *home, unsigned class, void *block) {
  if (tsl_slab_place(class, block).index < 0) return tsl_misuse_interior(block);
  if (tsl_unlikely(tsl_remote_has_free(home->number, class, block))) return tsl_misuse_twice(block);
  tsl_heap_push(home, class, block);
}

// Puts up to `most` hot blocks of a class back into their slabs.
static void bin_drain(struct tsl_heap *heap, unsigned class, unsigned most) {
  for (; most != 0; most--) {
    void *block = tsl_bin_pop(heap, class);
    if (block == NULL) return;
    uint32_t owner = tsl_map_lookup(block) >> TSL_CODE_BITS;
    if (tsl_likely(owner == heap->number)) {
      heap_tally(heap, class)->rested++;
      heap_put(heap, class, block);
    } else {
      tsl_remote_put(owner, class, block);
    }
  }
}

// A point behind blocks that are not handed out is drawn anew with the next handful; one that is
// next, too, or the chance of it would depend on where it lies.
static void stock_forget_point(struct tsl_heap *heap, unsigned class) {
  heap->store->sampled_cold &= ~(UINT64_C(1) << class % 64);
}

static void stock_drain(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  stock_forget_point(heap, class);
  while (stock->run != 0 || tsl_stock_run(stock)) {
    void *block = tsl_stock_pop(stock);
    heap->store->allocations[class]--;
    heap_tally(heap, class)->rested++;
    heap_put_at(heap, class, tsl_slab_place(class, block), block);
  }
}

static void tally_refill(struct tsl_tally *tally, unsigned blocks) {
  tally->out += blocks;
  tally->refills++;
  tally->refilled += blocks;
}

// The secure build takes one block at a time. One that waits in the quarantine was freed by another
// thread as well: it stays there, out of its slab.
static bool is_quarantined(struct tsl_heap *heap, unsigned class, struct tsl_handful handful) {
  size_t offset = (size_t)tsl_lowest_bit(handful.blocks) * tsl_sizeclasses[class].bytes;
  const void *block = (const void *)(handful.base + offset);
  if (!tsl_quarantine_has(block)) return false;
  heap_tally(heap, class)->out++;
  tsl_misuse_both(block);
  return true;
}

static bool heap_refill_stock(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  tsl_heap_look_at_ready(heap, COLLECT_BUDGET);
  struct tsl_slab *slab = stock->slabs != NULL ? stock->slabs : heap_open_slab(heap, class);
  if (slab == NULL) return false;
  if (tsl_stock_blocks(stock) != 0)
    stock_drain(heap, class);  // a limit's callback may have allocated here
  struct tsl_handful handful = tsl_slab_take(slab);
  if (slab->summary == 0) tsl_stock_unlist(stock, slab);
  if (TSL_SECURE && is_quarantined(heap, class, handful)) return heap_refill_stock(heap, class);
  stock->next = handful.base;
  stock->rest = handful.blocks;
  tally_refill(heap_tally(heap, class), tsl_bit_count(handful.blocks));
  return true;
}

void tsl_heap_rest(struct tsl_heap *heap) {
  for (unsigned looks = 0; looks < REST_LOOKS; looks++) {
    unsigned class = heap->store->rest_next++ % TSL_BINS;
    uint32_t total = (uint32_t)heap->store->allocations[class] - tsl_bin_until(&heap->bins[class]);
    bool idle = total == heap->store->rest_total[class];
    heap->store->rest_total[class] = total;
    if (class < TSL_GATHERS) tsl_remote_send(heap, class);
    if (idle) stock_forget_point(heap, class);
    if (idle && (heap->bins[class].head != &tsl_bin_end || heap->store->stocks[class].run != 0)) {
      bin_drain(heap, class, REST_BLOCKS);
      stock_drain(heap, class);
      return;
    }
  }
}

// What the thread did not need of its unit cache since the last tick goes to the others.
static void heap_tick(struct tsl_heap *home) {
  home->ticks = TSL_TICK_REFILLS;
  tsl_heap_rest(home);
  tsl_home_units_trim(home, home->unit_count - home->unit_low);
  tsl_mixed_look(home, TSL_MIXED_FEW);
  tsl_heap_look_at_pool();
  tsl_report_tick(home);
  tsl_heap_follow_samples(home);
  tsl_remains_step();
  bool sparse = tsl_sparse_step(home), surplus = tsl_purge_tick();
  bool more = sparse || surplus || tsl_remains_wait();
  if (more) heap_wake(home);
  home->awake = more;
}

// A look at the clock once a millisecond would be right.
static void heap_pace(struct tsl_heap *home, bool too_early, bool too_late) {
  if (too_early && home->pace < MOST_PACE) home->pace *= 2;
  if (too_late && home->pace > LEAST_PACE) home->pace /= 2;
}

// A program in a steady state takes nothing but hot blocks: while there is something to give back,
// it comes by here nevertheless; seldom otherwise, to see what threads that sleep or ended left.
static void heap_recount(struct tsl_heap *heap, unsigned class) {
  struct tsl_heap *home = heap->home;
  if (!home->awake && (tsl_purge_waits() || tsl_remains_wait())) heap_wake(home);
  uint64_t now_ms = home->awake ? tsl_os_now_ms() : 0, due_ms = home->store->sparse_due_ms;
  if (home->awake) heap_pace(home, now_ms<due_ms, now_ms> due_ms);
  if (tsl_sample_is_on()) tsl_sample_follow_times(heap);
  heap_count(heap, class);
  tsl_report_allocations(heap, class);
  if (home->awake && now_ms >= due_ms) heap_tick(home);
}

// The block goes back on its bin, and its allocation was none.
static void *sample_instead(struct tsl_heap *heap, unsigned class, uint32_t times, void *block) {
  void *sampled = tsl_sample_small(heap, class, times);
  if (sampled == NULL) return block;
  heap->store->allocations[class]--;
  tsl_heap_push(heap, class, block);
  return sampled;
}

// The allocation of the block was the one that looks at the counters.
static void *heap_counted(struct tsl_heap *heap, unsigned class, void *block) {
  bool is_sampled = (heap->store->sampled_hot >> class % 64 & 1) != 0 && class < TSL_CLASSES;
  uint32_t times = tsl_sample_times(heap);
  heap_recount(heap, class);
  return tsl_unlikely(is_sampled) ? sample_instead(heap, class, times, block) : block;
}

// The handful's blocks count as allocated from here on; readers subtract what is left of it.
static void stock_count(struct tsl_heap *heap, unsigned class) {
  heap->store->allocations[class] += tsl_stock_blocks(&heap->store->stocks[class]);
}

// Keeps the first `most` blocks of a new handful, so that the next beyond it is the one to sample.
static void stock_cut(struct tsl_heap *heap, unsigned class, uint32_t most) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  uint64_t rest = stock->rest;
  for (; most != 0 && rest != 0; most--) rest &= rest - 1;
  if (rest == 0) return;
  struct tsl_place place = tsl_slab_place(class, (void *)stock->next);
  stock->rest &= ~rest;
  tsl_slab_put_word(place.slab, (unsigned)place.index / 64, rest);
  heap_tally(heap, class)->out -= tsl_bit_count(rest);
  heap_tally(heap, class)->refilled -= tsl_bit_count(rest);
  if (!place.slab->listed) tsl_stock_list(stock, place.slab);
  heap->store->sampled_cold |= UINT64_C(1) << class % 64;
}

static bool is_tick_due(struct tsl_heap *home) {
  if (--home->ticks == 0) return true;
  return home->awake && tsl_os_now_ms() >= home->store->sparse_due_ms;
}

// Of the blocks that a refill hands out, the one numbered `sampled` is to be sampled; 0: none.
static void *heap_refill_from_slab(struct tsl_heap *heap, unsigned class, uint32_t sampled) {
  if (!tsl_heap_has_store(heap)) tsl_store_open(heap);
  struct tsl_stock *stock = &heap->store->stocks[class];
  uint8_t inside = heap->home->inside;
  tsl_bin_check(heap, class);
  if (TSL_SECURE) tsl_quarantine_look(heap);
  tsl_store_relaxed(&heap->home->inside, 1);
  bool filled = heap_refill_stock(heap, class);
  if (filled && sampled > 1) stock_cut(heap, class, sampled - 1);
  if (filled) stock_count(heap, class);
  tsl_store_relaxed(&heap->home->inside, inside);
  if (!filled) return bin_take_last(heap, class);
  tsl_report_bin(heap, class);
  tsl_stock_run(stock);
  return tsl_stock_pop(stock);
}

static void *heap_refill(struct tsl_heap *heap, unsigned class) {
  if (is_tick_due(heap->home)) heap_tick(heap->home);
  if (heap->epoch != 0) tsl_report_start();
  heap->refused = false;
  void *block = tsl_mixed_refill(heap, class);
  if (block != NULL || heap->refused) return block;
  uint32_t sampled = 0;
  if (tsl_sample_is_on()) block = tsl_sample_handful(heap, class, &sampled);
  return block != NULL ? block : heap_refill_from_slab(heap, class, sampled);
}

void *tsl_heap_refill(struct tsl_heap *heap, unsigned class) {
  void *block = heap_refill(heap, class);
  if (tsl_sample_is_on()) tsl_sample_follow_times(heap);
  return block;
}

void tsl_heap_push(struct tsl_heap *heap, unsigned class, void *block) {
  if (TSL_SECURE) return heap_quarantine(heap, class, block);
  heap_put_hot(heap, class, block);
}

bool tsl_heap_adopt(struct tsl_heap *home, uint32_t owner, unsigned class, void *block) {
  if (TSL_SECURE || class < TSL_GATHERS || !tsl_heap_is_home(owner)) return false;
  if (tsl_slab_place(class, block).index < 0) return false;
  if (block != home->bins[class].head) return tsl_bin_push(home, class, block);
  tsl_misuse_twice(block);
  return true;
}

// A block of the bin; NULL when it has no more than its last one. `*is_due`: the counters are.
static void *heap_pop_hot(struct tsl_heap *heap, unsigned class, bool *is_due) {
  struct tsl_bin *bin = &heap->bins[class];
  void *block = tsl_bin_ends(heap, bin) ? NULL : tsl_bin_pop(heap, class);
  if (block == NULL) return NULL;
  bin->room--;
  *is_due = --bin->until == UINT32_MAX;
  return block;
}

void *tsl_heap_pop_sampled(struct tsl_heap *heap, unsigned class) {
  bool is_due = false;
  void *block = heap_pop_hot(heap, class, &is_due);
  if (block == NULL) return tsl_heap_pop(heap, class);
  return is_due ? heap_counted(heap, class, block) : block;
}

static void *heap_pop_cold(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  if (stock->run != 0 || (stock->rest != 0 && tsl_stock_run(stock))) return tsl_stock_pop(stock);
  return heap_refill_from_slab(heap, class, 0);
}

void *tsl_heap_pop(struct tsl_heap *heap, unsigned class) {
  bool is_due = false;
  void *block = heap_pop_hot(heap, class, &is_due);
  if (is_due) heap_recount(heap, class);
  return block != NULL ? block : heap_pop_cold(heap, class);
}

void *tsl_heap_pop_quietly(struct tsl_heap *heap, unsigned class) {
  bool is_due = false;
  void *block = heap_pop_hot(heap, class, &is_due);
  if (is_due) heap_count(heap, class);
  return block != NULL ? block : heap_pop_cold(heap, class);
}

void tsl_heap_put_any(uint32_t entry, void *block) {
  struct tsl_heap *home = tsl_heap_current->home;
  unsigned class = tsl_entry_code(entry) / 2;
  if (entry >> TSL_CODE_BITS != home->number)
    return tsl_remote_put(entry >> TSL_CODE_BITS, class, block);
  tsl_heap_push(home, class, block);
}

// The slab counts its block, and does not go back even if it is empty.
static void lay_down(struct tsl_heap *heap, unsigned class, void *block) {
  struct tsl_place place = tsl_slab_place(class, block);
  if (place.index < 0) return tsl_misuse_interior(block);
  if (!tsl_slab_put(place.slab, (unsigned)place.index)) return tsl_misuse_twice(block);
  heap_tally(heap, class)->out--;
  if (!place.slab->listed) tsl_stock_list(&heap->store->stocks[class], place.slab);
}

static void bin_lay_down(struct tsl_heap *heap, unsigned class) {
  for (void *block; (block = tsl_bin_pop(heap, class)) != NULL;) {
    heap_tally(heap, class)->rested++;
    lay_down(heap, class, block);
  }
}

static void stock_lay_down(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->store->stocks[class];
  stock_forget_point(heap, class);
  heap->store->allocations[class] -= tsl_stock_blocks(stock);
  heap_tally(heap, class)->rested += tsl_stock_blocks(stock);
  while (stock->run != 0 || tsl_stock_run(stock)) lay_down(heap, class, tsl_stock_pop(stock));
}

void tsl_heap_lay_down(struct tsl_heap *heap) {
  for (void *block; (block = tsl_quarantine_take(heap)) != NULL;)
    lay_down(heap, block_class(block), block);
  for (unsigned class = 0; class < TSL_CLASSES; class += 1) {
    bin_lay_down(heap, class);
    stock_lay_down(heap, class);
  }
}

// Slabs whose guard stayed when they became empty are tried once more.
static void heap_close_empty(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    for (struct tsl_slab *slab = heap->store->stocks[class].slabs, *next; slab != NULL;
         slab = next) {
      next = slab->next;
      if (slab->out == 0) heap_close_slab(heap, slab);
    }
  }
}

void tsl_heap_rest_all(struct tsl_heap *heap) {
  for (void *block; (block = tsl_quarantine_take(heap)) != NULL;) heap_end_quarantine(heap, block);
  tsl_remote_send_all(heap);
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    bin_drain(heap, class, UINT32_MAX);
    stock_drain(heap, class);
  }
}

size_t tsl_heap_hot_blocks(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_stock *stock = &heap->store->stocks[class];
  uint32_t run = tsl_load_relaxed(&stock->run);
  uint64_t rest = tsl_load_relaxed(&stock->rest);
  size_t quarantined = tsl_quarantine_blocks(heap, class);
  return tsl_bin_length(heap, class) + run + tsl_bit_count(rest) + quarantined;
}

void tsl_heap_collect(struct tsl_heap *heap) {
  tsl_mixed_look(heap, UINT32_MAX);
  tsl_heap_rest_all(heap);
  tsl_store_relaxed(&heap->home->inside, 1);
  tsl_heap_look_at_ready(heap, UINT32_MAX);
  if (TSL_SECURE) heap_close_empty(heap);
  tsl_home_units_trim(heap, 0);
  tsl_store_relaxed(&heap->home->inside, 0);
  tsl_report_heap(heap);
  tsl_invariant(tsl_heap_valid(heap));
}

static bool slabs_valid(const struct tsl_heap *heap) {
  uint32_t count = 0;
  tsl_unit before = 0;
  for (tsl_unit unit = heap->slabs; unit != 0; before = unit, unit = tsl_span_at(unit)->next) {
    if (tsl_span_at(unit)->prev != before || tsl_span_at(unit)->epoch != heap->epoch) return false;
    uint32_t entry = tsl_load_relaxed(tsl_map_entry(unit)) & ~(uint32_t)TSL_CODE_VISITED;
    if (entry != (heap->tag | tsl_slab_at(unit)->class * 2u)) return false;
    count++;
  }
  return count == heap->slab_count;
}

bool tsl_heap_valid(const struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    if (!tsl_bin_valid(heap, class) || !tsl_stock_valid(&heap->store->stocks[class], class))
      return false;
  }
  return slabs_valid(heap);
}
