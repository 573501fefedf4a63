#include "heap/valid.h"

#include "blocks.h"
#include "heap/rest.h"
#include "state.h"
#include "takes.h"

static struct tsl_heap *home, *other, *part;

static struct tsl_slab *listed(void) { return home->store->stocks[takes_class(64)].slabs; }

// The home heap has slabs of two classes and has freed blocks of another one; its part has cells.
static void open_all(void) {
  tslab_epoch id;
  blocks_open((size_t)1 << 28, &home, &other);
  tsl_heap_current = other;
  alloc_many(64, 300);
  tsl_heap_current = home;
  for (unsigned i = 0; i < 100; i++) tsl_fast_free(blocks[i]);
  alloc_many(64, 1000);
  alloc_many(3000, 10);
  for (unsigned i = 400; i < block_count; i += 2) tsl_fast_free(blocks[i]);
  tsl_heap_drain_stock(home, takes_class(64));
  part = blocks_open_part(home, 4096, &id);
  alloc_many(64, 1000);
  tsl_heap_current = home;
  CHECK(tsl_heap_valid(home));
  CHECK(tsl_heap_valid(part));
  CHECK(listed() != NULL);
}

static void lengthen_bin(void) { home->bins[takes_class(64)].room--; }
static void exceed_limit(void) {
  home->store->limits[takes_class(64)].now--;
  home->bins[takes_class(64)].room--;
}
static void limit_beyond_most(void) { home->store->limits[takes_class(500)].most = 0; }
static void most_beyond_longest(void) { home->store->limits[takes_class(500)].most = UINT16_MAX; }
static void lose_mark(void) { home->bins[takes_class(64)].head->mark = 0; }
static void count_block_out(void) { listed()->out++; }
static void unlist_slab(void) { listed()->listed = false; }
static void lose_slab(void) { home->slabs = tsl_span_at(home->slabs)->next; }
static void count_slab(void) { home->slab_count++; }
static void slab_of_another(void) { tsl_span_at(home->slabs)->epoch = 1; }
static void map_another(void) { *tsl_map_entry(home->slabs) ^= 1u << TSL_CODE_BITS; }
static void begin_another_life(void) { home->life++; }
static void stay_in_gather(void) { home->home->own->gathers[takes_class(64)].round++; }
static void wait_for_nothing(void) { home->home->own->gathers[0].out = 1; }
static void count_quarantined(void) { home->store->quarantined[0]++; }

static void damages_are_found(void (*const damages[])(void), size_t count) {
  open_all();
  char before[sizeof *home];
  for (unsigned i = 0; i < count; i++) {
    struct tsl_slab *slab = listed();
    tsl_unit first = home->slabs;
    struct tsl_home_store store = *home->home->own;
    uint32_t out = slab->out, entry = *tsl_map_entry(first);
    memcpy(before, home, sizeof before);
    damages[i]();
    CHECK(!tsl_heap_valid(home));
    memcpy(home, before, sizeof before);
    *home->home->own = store;
    slab->out = out;
    slab->listed = true;
    tsl_span_at(first)->epoch = 0;
    *tsl_map_entry(first) = entry;
    CHECK(tsl_heap_valid(home));
  }
}

// B2, S1, H2, H3, PA1.
static void broken_homes_are_found(void) {
  static void (*const damages[])(void) = {
      lengthen_bin,   count_block_out,  unlist_slab,       lose_slab,
      count_slab,     slab_of_another,  map_another,       begin_another_life,
      stay_in_gather, wait_for_nothing, count_quarantined,
  };
  damages_are_found(damages, sizeof damages / sizeof *damages);
}

// B5, B6.
static void broken_limits_are_found(void) {
  static void (*const damages[])(void) = {exceed_limit, limit_beyond_most, most_beyond_longest};
  damages_are_found(damages, sizeof damages / sizeof *damages);
}

static void broken_bins_are_found(void) {
  open_all();
  lose_mark();
  CHECK(!tsl_heap_valid(home));
}

// H2: a block at hand that is free in its slab as well.
static void blocks_in_two_places_are_found(void) {
  open_all();
  void *block = alloc(64);
  struct tsl_stock *stock = &home->store->stocks[takes_class(64)];
  if (stock->run == 0) {
    stock->next = (uintptr_t)block;
    stock->run = 1;
    CHECK(tsl_heap_valid(home));
  }
  struct tsl_position position = tsl_slab_position(takes_class(64), (void *)stock->next);
  position.slab->remote[position.index / 64] |= UINT64_C(1) << (unsigned)position.index % 64;
  CHECK(!tsl_heap_valid(home));
}

// CE1, CE3.
static void broken_cells_are_found(void) {
  open_all();
  struct tsl_cell *newest = tsl_cell_at(part->cells), *oldest = tsl_cell_at(part->cells_oldest);
  CHECK(newest != oldest);
  part->cell_count++;
  CHECK(!tsl_heap_valid(part));
  part->cell_count--;
  part->cell_pages++;
  CHECK(!tsl_heap_valid(part));
  part->cell_pages--;
  oldest->heap = 0;
  CHECK(!tsl_heap_valid(part));
  oldest->heap = part->number;
  oldest->freed = oldest->blocks + 1;
  CHECK(!tsl_heap_valid(part));
  oldest->freed = 0;
  newest->newer = part->cells_oldest;
  CHECK(!tsl_heap_valid(part));
  newest->newer = 0;
  CHECK(tsl_heap_valid(part));
}

int main(void) {
  RUN(broken_homes_are_found);
  RUN_UNLESS_SECURE(broken_limits_are_found);
  RUN_UNLESS_SECURE(broken_bins_are_found);
  RUN(blocks_in_two_places_are_found);
  RUN_UNLESS_SECURE(broken_cells_are_found);
  return test_status();
}
