#include "epoch/heap.h"

#include "base/atomic.h"
#include "base/check.h"
#include "base/options.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"

enum {
  COLLECT_BUDGET = 4,     // slabs that one refill looks at
  TICK_REFILLS = 64,      // refills between two purge ticks
  BIN_BYTES = 16384,      // a bin holds about so much,
  BIN_LEAST = 8,          // but at least so many blocks
  BIN_MOST = 64,          // and at most so many
};
#define NEVER UINT32_MAX

uintptr_t tsl_bin_end = UINTPTR_MAX;

#define EMPTY_BIN {.head = &tsl_bin_end}
#define EMPTY_BINS_5 EMPTY_BIN, EMPTY_BIN, EMPTY_BIN, EMPTY_BIN, EMPTY_BIN
#define EMPTY_BINS_17 EMPTY_BINS_5, EMPTY_BINS_5, EMPTY_BINS_5, EMPTY_BIN, EMPTY_BIN
_Static_assert(TSL_CLASSES == 5 * 17, "one initialiser a bin");

struct tsl_heap tsl_heap_empty = {
    .bins = {EMPTY_BINS_17, EMPTY_BINS_17, EMPTY_BINS_17, EMPTY_BINS_17, EMPTY_BINS_17},
};

TSL_TLS struct tsl_heap *tsl_heap_current = &tsl_heap_empty;

static struct tsl_stack pool;
static uint32_t last_number;  // [remote] heaps made so far

static uint32_t *pool_link(uint32_t number) { return &tsl_heap_at(number)->pool_next; }

static unsigned bin_limit(unsigned class) {
  unsigned blocks = BIN_BYTES / tsl_sizeclasses[class].bytes;
  return blocks > BIN_MOST ? BIN_MOST : blocks < BIN_LEAST ? BIN_LEAST : blocks;
}

static void heap_init(struct tsl_heap *heap, uint32_t number) {
  heap->tag = number << TSL_CODE_BITS;
  heap->number = number;
  heap->contained = tsl_region.span_bytes;
  heap->home = heap;
  heap->ticks = TICK_REFILLS;
  for (unsigned class = 0; class < TSL_CLASSES; class++) {
    heap->bins[class] = (struct tsl_bin){&tsl_bin_end, NEVER, (int32_t)bin_limit(class)};
    heap->stocks[class].allocations = NEVER;
    heap->stocks[class].block_bytes = tsl_sizeclasses[class].bytes;
  }
}

struct tsl_heap *tsl_heap_take(void) {
  uint32_t number = tsl_stack_pop(&pool, pool_link);
  if (number != 0) return tsl_heap_at(number);
  number = tsl_add_relaxed(&last_number, 1) + 1;
  if (!tsl_region_commit_heap(number)) return NULL;
  heap_init(tsl_heap_at(number), number);
  return tsl_heap_at(number);
}

void tsl_heap_pool(struct tsl_heap *heap) {
  heap->exit_rounds = 0;
  tsl_stack_push(&pool, heap->number, pool_link);
}

static void stock_list(struct tsl_stock *stock, struct tsl_slab *slab) {
  slab->listed = true;
  slab->prev = NULL;
  slab->next = stock->slabs;
  if (stock->slabs != NULL) stock->slabs->prev = slab;
  stock->slabs = slab;
}

static void stock_unlist(struct tsl_stock *stock, struct tsl_slab *slab) {
  slab->listed = false;
  if (slab->next != NULL) slab->next->prev = slab->prev;
  if (slab->prev != NULL) {
    slab->prev->next = slab->next;
  } else {
    stock->slabs = slab->next;
  }
}

static void *handful_pop(struct tsl_handful *handful, size_t block_bytes) {
  unsigned block = tsl_lowest_bit(handful->blocks);
  handful->blocks &= handful->blocks - 1;
  return (void *)(handful->base + block * block_bytes);
}

static tsl_unit heap_take_units(struct tsl_heap *home, unsigned count) {
  bool clean;
  if (count > 1) return tsl_units_take(count, count, &clean);
  if (home->unit_count != 0) return home->units[--home->unit_count];
  tsl_unit unit = tsl_unit_cache_take();
  return unit != 0 ? unit : tsl_units_take(1, 1, &clean);
}

static void heap_give_units(struct tsl_heap *home, tsl_unit first, unsigned count) {
  if (count == 1 && home->unit_count < (uint32_t)tsl_option(cache_units)) {
    home->units[home->unit_count++] = first;
    return;
  }
  if (count == 1) {
    tsl_unit_cache_give(first);
  } else {
    tsl_units_give(first, count);
  }
  tsl_purge_tick();
}

static void map_fill(tsl_unit first, unsigned count, uint32_t entry) {
  for (unsigned i = 0; i < count; i++) tsl_store_relaxed(tsl_map_entry(first + i), entry);
}

static struct tsl_slab *heap_open_slab(struct tsl_heap *heap, unsigned class) {
  unsigned count = tsl_sizeclasses[class].units;
  tsl_unit first = heap_take_units(heap->home, count);
  if (first == 0) return NULL;
  struct tsl_slab *slab = tsl_slab_open(first, class);
  map_fill(first, count, heap->tag | class * 2);
  stock_list(&heap->stocks[class], slab);
  return slab;
}

// An empty slab's units go back.
static void heap_close_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  unsigned count = tsl_sizeclasses[slab->class].units;
  tsl_unit first = (tsl_unit)tsl_slab_unit(slab);
  if (slab->listed) stock_unlist(&heap->stocks[slab->class], slab);
  map_fill(first, count, 0);
  heap_give_units(heap->home, first, count);
}

// A slab got blocks back.
static void heap_settle_slab(struct tsl_heap *heap, struct tsl_slab *slab) {
  if (slab->out == 0) {
    heap_close_slab(heap, slab);
  } else if (!slab->listed && slab->summary != 0) {
    stock_list(&heap->stocks[slab->class], slab);
  }
}

// Looks at up to `budget` slabs with remote frees.
static void heap_look_at_ready(struct tsl_heap *heap, unsigned budget) {
  for (; budget != 0; budget--) {
    if (heap->pending == 0) {
      if (tsl_load_relaxed(&heap->ready) == 0) return;
      heap->pending = tsl_exchange_acquire(&heap->ready, 0);  // pairs: ready
    }
    struct tsl_slab *slab = tsl_slab_at(heap->pending);
    heap->pending = slab->ready_next;
    tsl_slab_collect(slab);
    heap_settle_slab(heap, slab);
  }
}

static bool heap_refill_stock(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->stocks[class];
  heap_look_at_ready(heap, COLLECT_BUDGET);
  struct tsl_slab *slab = stock->slabs != NULL ? stock->slabs : heap_open_slab(heap, class);
  if (slab == NULL) return false;
  stock->rest = tsl_slab_take(slab);
  if (slab->summary == 0) stock_unlist(stock, slab);
  return true;
}

static void heap_tick(struct tsl_heap *heap) {
  if (--heap->ticks != 0) return;
  heap->ticks = TICK_REFILLS;
  tsl_purge_tick();
}

// The last block of a bin stays there for the fast path's sake, until nothing else is left.
static void *bin_take_last(struct tsl_bin *bin) {
  uintptr_t *block = bin->head;
  if (block == &tsl_bin_end) return NULL;
  bin->head = &tsl_bin_end;
  bin->room++;
  return block;
}

void *tsl_heap_refill(struct tsl_heap *heap, unsigned class) {
  struct tsl_stock *stock = &heap->stocks[class];
  if (tsl_unlikely(stock->rest.blocks == 0)) {
    tsl_store_relaxed(&heap->home->inside, 1);
    bool filled = heap_refill_stock(heap, class);
    heap_tick(heap->home);
    tsl_store_relaxed(&heap->home->inside, 0);
    if (!filled) return bin_take_last(&heap->bins[class]);
  }
  void *block = handful_pop(&stock->rest, stock->block_bytes);
  return tsl_unlikely(--heap->bins[class].until == 0) ? tsl_heap_recount(heap, class, block) : block;
}

void *tsl_heap_recount(struct tsl_heap *heap, unsigned class, void *block) {
  heap->stocks[class].allocations += NEVER;
  heap->bins[class].until = NEVER;
  return block;
}

void tsl_heap_put(struct tsl_heap *heap, unsigned class, void *block) {
  size_t unit = tsl_slab_first_unit(tsl_unit_of(block), class);
  struct tsl_slab *slab = tsl_slab_at(unit);
  int index = tsl_slab_index(unit, class, block);
  if (tsl_unlikely(index < 0)) {
    tsl_misuse("free(%p): not the beginning of a block", block);
    return;
  }
  tsl_store_relaxed(&heap->home->inside, 1);
  if (tsl_unlikely(!tsl_slab_put(slab, (unsigned)index))) {
    tsl_misuse("free(%p): the block is free already", block);
  } else if (tsl_unlikely(slab->out == 0) || !slab->listed) {
    heap_settle_slab(heap, slab);
  }
  tsl_store_relaxed(&heap->home->inside, 0);
}

static void heap_push_ready(struct tsl_heap *heap, struct tsl_slab *slab, tsl_unit unit) {
  tsl_unit head = tsl_load_relaxed(&heap->ready);
  do {
    slab->ready_next = head;
  } while (!tsl_cas_release(&heap->ready, &head, unit));  // pairs: ready
}

void tsl_heap_put_remote(uint32_t number, unsigned class, void *block) {
  size_t unit = tsl_slab_first_unit(tsl_unit_of(block), class);
  struct tsl_slab *slab = tsl_slab_at(unit);
  int index = tsl_slab_index(unit, class, block);
  if (tsl_unlikely(index < 0)) {
    tsl_misuse("free(%p): not the beginning of a block", block);
    return;
  }
  switch (tsl_slab_put_remote(slab, (unsigned)index)) {
    case TSL_REMOTE_DONE: return;
    case TSL_REMOTE_PUSH: heap_push_ready(tsl_heap_at(number), slab, (tsl_unit)unit); return;
    case TSL_REMOTE_TWICE: tsl_misuse("free(%p): the block is free already", block); return;
  }
}

static void heap_empty_bin(struct tsl_heap *heap, unsigned class) {
  struct tsl_bin *bin = &heap->bins[class];
  while (bin->head != &tsl_bin_end) {
    uintptr_t *block = bin->head;
    bin->head = (void *)(*block ^ (uintptr_t)block);
    bin->room++;
    tsl_heap_put(heap, class, block);
  }
  struct tsl_stock *stock = &heap->stocks[class];
  while (stock->rest.blocks != 0) {
    tsl_heap_put(heap, class, handful_pop(&stock->rest, stock->block_bytes));
  }
}

void tsl_heap_collect(struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_CLASSES; class++) heap_empty_bin(heap, class);
  tsl_store_relaxed(&heap->home->inside, 1);
  heap_look_at_ready(heap, UINT32_MAX);
  while (heap->unit_count != 0) tsl_unit_cache_give(heap->units[--heap->unit_count]);
  tsl_store_relaxed(&heap->home->inside, 0);
  tsl_invariant(tsl_heap_valid(heap));
}

void tsl_heap_collect_pooled(void) {
  uint32_t number = tsl_stack_pop(&pool, pool_link);
  if (number == 0) return;
  tsl_heap_collect(tsl_heap_at(number));
  tsl_stack_push(&pool, number, pool_link);
}

void tsl_heap_after_fork(struct tsl_heap *mine) {
  pool = (struct tsl_stack){0};
  for (uint32_t number = 1; number <= last_number && number < tsl_region.limit_heaps; number++) {
    struct tsl_heap *heap = tsl_heap_at(number);
    if (heap == mine || heap->number == 0 || heap->inside != 0) continue;
    tsl_heap_pool(heap);
  }
}

static bool stock_valid(const struct tsl_stock *stock, unsigned class) {
  const struct tsl_slab *before = NULL;
  for (const struct tsl_slab *slab = stock->slabs; slab != NULL; before = slab, slab = slab->next) {
    if (slab->class != class || !slab->listed || slab->prev != before) return false;
    if (slab->summary == 0 || !tsl_slab_valid(slab)) return false;
  }
  return true;
}

static bool bin_valid(const struct tsl_heap *heap, unsigned class) {
  const struct tsl_bin *bin = &heap->bins[class];
  int32_t length = 0;
  for (const uintptr_t *block = bin->head; block != &tsl_bin_end; length++) {
    if (tsl_map_lookup(block) != (heap->tag | class * 2)) return false;
    block = (const uintptr_t *)(*block ^ (uintptr_t)block);
  }
  return length + bin->room == (int32_t)bin_limit(class);
}

bool tsl_heap_valid(const struct tsl_heap *heap) {
  for (unsigned class = 0; class < TSL_CLASSES; class++) {
    if (!bin_valid(heap, class) || !stock_valid(&heap->stocks[class], class)) return false;
  }
  return true;
}
