#include "state/heap.h"

// Ready stacks, the pool of heaps, parts that live again, and what else an epoch counts.
#include <errno.h>
#include <string.h>

#include "epoch/orphans.h"
#include "heap/remote.h"
#include "heap/warm.h"
#include "scenario.h"
#include "state/change.h"
#include "upkeep/collect.h"
#include "upkeep/pool.h"
#include "upkeep/rounds.h"
#include "upkeep/thin.h"

// Small blocks go home to their slab when others free them. One of the 64 of A's lies in its bin.
enum { EIGHTH_BYTES = 8192, LARGE_BYTES = 100000, PAGE_BYTES = 4096, REST_OF_SLAB = 63 };

static uint32_t flag;
static tslab_epoch parent, second, third;

static void free_0(void) { free_block(0); }
static void send(void) { tsl_remote_send_all(tsl_heap_current->home); }
static void free_1(void) {
  free_block(1);
  send();
}
static void free_all_but_0_1(void) {
  for (unsigned i = 2; i < REST_OF_SLAB; i++) free_block(i);
  send();
}
static void free_together(void) {
  free_block(0);
  free_block(1);
  send();
}

static void fill_slab(unsigned count, size_t bytes) {
  for (unsigned i = 0; i < count; i++) {
    blocks[i] = tslab_malloc(bytes);
    EXPECT(blocks[i] != NULL);
  }
}
static void fill_rest(void) { fill_slab(REST_OF_SLAB, BLOCK_BYTES); }
static void fill_halves(void) { fill_slab(128, BLOCK_BYTES / 2); }
static void fill_two(void) { fill_slab(2, BLOCK_BYTES); }
static void free_all_but_two(void) {
  for (unsigned i = 0; i < 128; i++) {
    if (i != 0 && i != 64) free_block(i);
  }
  send();
}
static void free_64(void) {
  free_block(64);
  send();
}

// A slab of A's, with nothing but two blocks in use; the rest is on its way back by C.
static void nearly_empty(void) {
  warm_all();
  model_as(A, fill_rest);
  model_as(C, free_all_but_0_1);
}
static void nearly_empty_words(void) {
  warm_all();
  model_as(A, fill_halves);
  model_as(C, free_all_but_two);
}

static void collect(void) { tsl_home_collect(tsl_heap_current->home); }
static void collect_twice(void) {
  collect();
  collect();
}
static void allocate_again(void) {
  blocks[10] = tslab_malloc(EIGHTH_BYTES);
  EXPECT(blocks[10] != NULL);
}

static void refill(void) {
  blocks[64] = tslab_malloc(BLOCK_BYTES);
  EXPECT(blocks[64] != NULL);
}

// B has no heap yet.
static void a_and_c(void) {
  model_as(A, fill_two);
  model_as(C, allocate_again);
}
static void exit_thread(void) { model_exit_thread(); }
static void allocate_first(void) {
  blocks[11] = tslab_malloc(BLOCK_BYTES);
  EXPECT(blocks[11] != NULL);
}
static void pooled(void) {
  a_and_c();
  model_as(A, exit_thread);
}
static void look(void) {
  for (unsigned i = 0; i < 2; i++) tsl_pool_look();
}

// The child of a fork by A: it has no C any more, and B is new. C has no free blocks at hand, which
// would be given up.
static void come_and_vanish(void) {
  allocate_again();
  collect();
  tsl_heap_current = &tsl_home_empty.heap;
}
static void note_orphans(void) { tsl_orphans_after_fork(tsl_heap_current->home); }
static void without_c(void) {
  model_as(A, fill_two);
  model_as(C, come_and_vanish);
  model_as(A, note_orphans);
}
static void begin_and_free(void) {
  allocate_first();
  free_block(0);
  free_block(1);
}

static void begin_and_adopt(void) {
  allocate_first();
  tsl_orphans_adopt();
}

static void take_two(void) {
  EXPECT(tsl_home_take() != tsl_home_take());
  free_rest();
}

// The helper, which finds pages of A's slab dead while A takes blocks from them. Blocks 0 and 1
// keep the first page; the fourth that A takes lies in another one.
static void tend(void) {
  struct tsl_heap *heap = tsl_heap_at(tsl_entry_owner(tsl_map_lookup(blocks[1])));
  if (!tsl_tend_begin(heap->home)) return;
  for (tsl_unit unit = heap->slabs; unit != 0; unit = tsl_span_at(unit)->next)
    tsl_slab_purge_tended(tsl_slab_at(unit), 1);
  tsl_tend_end(heap->home);
}
static void refill_and_write(void) {
  for (unsigned i = 64; i < 68; i++) {
    blocks[i] = tslab_malloc(BLOCK_BYTES);
    EXPECT(blocks[i] != NULL);
  }
  memset(blocks[67], 7, BLOCK_BYTES);
}

// The helper, which gives A's warm part back while A takes it for the next epoch.
static void release_one(void) {
  epoch = open_cells();
  blocks[0] = tslab_epoch_malloc(epoch, BLOCK_BYTES);
  EXPECT(blocks[0] != NULL);
  EXPECT(tslab_epoch_release(epoch) == 0);
  blocks[0] = NULL;
}
static struct tsl_home *home_of_a;
static void note_home(void) { home_of_a = tsl_heap_current->home; }
static void with_warm_part(void) {
  warm_all();
  model_as(A, release_one);
  model_as(A, note_home);
  EXPECT(home_of_a->own->warm_count == 1);
}
static void tend_warm(void) {
  if (!tsl_tend_begin(home_of_a)) return;
  tsl_warm_tend(home_of_a, UINT64_MAX);
  tsl_tend_end(home_of_a);
}
static void take_warm(void) {
  epoch = open_cells();
  blocks[1] = tslab_epoch_malloc(epoch, BLOCK_BYTES);
  EXPECT(blocks[1] != NULL);
  memset(blocks[1], 7, BLOCK_BYTES);
}
static void check_warm(void) {
  EXPECT(tsl_warm_valid(home_of_a));
  for (size_t i = 0; i < BLOCK_BYTES; i++) EXPECT(((const char *)blocks[1])[i] == 7);
  blocks[1] = NULL;
  EXPECT(tslab_epoch_release(epoch) == 0);
}

// The same with the slabs of A's part of a shared epoch.
static void fill_rest_inside(void) {
  EXPECT(tslab_scope_enter(&scopes[A], epoch) == 0);
  tsl_heap_current->cell_class = false;
  fill_rest();
  EXPECT(tslab_scope_leave(&scopes[A]) == 0);
}
static void nearly_empty_inside(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  warm_all();
  epoch = tslab_epoch_open("shared", &options);
  model_as(A, fill_rest_inside);
  model_as(C, free_all_but_0_1);
}
static void refill_inside(void) {
  EXPECT(tslab_scope_enter(&scopes[A], epoch) == 0);
  refill_and_write();
  EXPECT(tslab_scope_leave(&scopes[A]) == 0);
}

// Its block goes on the bin of the part, from which the next one comes.
static void free_outside_and_refill(void) {
  free_block(0);
  refill_inside();
}

static void finish_written(void) {
  for (size_t i = 0; i < BLOCK_BYTES; i++) EXPECT(((const char *)blocks[67])[i] == 7);
  free_rest();
}

static void finish_written_inside(void) {
  finish_written();
  close_epoch();
}

// The helper tends A's part while B closes its epoch: the slab goes back, and B takes its memory
// for blocks of its own.
static struct tsl_part *part_of_a;
static void fill_and_note(void) {
  EXPECT(tslab_scope_enter(&scopes[A], epoch) == 0);
  tsl_heap_current->cell_class = false;
  part_of_a = tsl_part_of(tsl_heap_current);
  fill_rest();
  EXPECT(tslab_scope_leave(&scopes[A]) == 0);
}
static void free_all(void) {
  free_all_but_0_1();
  free_block(0);
  free_block(1);
}
static void dead_part(void) {
  warm_all();
  epoch = tslab_epoch_open("own", NULL);
  model_as(A, fill_and_note);
  model_as(C, free_all);
}
static void tend_part(void) {
  const struct tsl_heap *heap = &part_of_a->heap;
  if (!tsl_tend_begin(heap->home)) return;
  if (tsl_heap_has_store(heap) && !tsl_change_is_shut(part_of_a))
    for (tsl_unit unit = heap->slabs; unit != 0; unit = tsl_span_at(unit)->next)
      tsl_slab_purge_tended(tsl_slab_at(unit), 0);
  tsl_tend_end(heap->home);
}
static void close_and_write(void) {
  close_epoch();
  refill_and_write();
}
static void release_and_write(void) {
  EXPECT(tslab_epoch_release(epoch) == 0);
  refill_and_write();
}
static void check_written(void) {
  for (size_t i = 0; i < BLOCK_BYTES; i++) EXPECT(((const char *)blocks[67])[i] == 7);
  for (unsigned i = 64; i < 68; i++) free_block(i);
}

// The helper gives pages of A's cells of 16 KiB back, for the second time that it looks at them,
// while A frees the last block of the older one, and takes its memory for another cell.
static void enter_and_note(void) {
  EXPECT(tslab_scope_enter(&scopes[A], epoch) == 0);
  part_of_a = tsl_part_of(tsl_heap_current);
}
static void leave_epoch(void) { EXPECT(tslab_scope_leave(&scopes[A]) == 0); }
static void cut_blocks(unsigned from, unsigned end) {
  for (unsigned i = from; i < end; i++) {
    blocks[i] = tslab_malloc(PAGE_BYTES);
    EXPECT(blocks[i] != NULL);
  }
}
static void tend_cells(void) {
  struct tsl_heap *heap = &part_of_a->heap;
  if (!tsl_tend_begin(heap->home)) return;
  tsl_thin_begin_turn();
  if (!tsl_change_is_shut(part_of_a)) tsl_thin_tend(heap);
  tsl_tend_end(heap->home);
}
static void thin_older(void) {
  enter_and_note();
  cut_blocks(0, 6);
  for (unsigned i = 0; i < 3; i++) free_block(i);
  leave_epoch();
}
static void open_small_cells(void (*fill)(void)) {
  tslab_epoch_options options = {.size = sizeof options,
                                 .place = TSLAB_PLACE_OWN,
                                 .threads = 3,
                                 .first_cell_bytes = 4 * PAGE_BYTES};
  warm_all();
  epoch = tslab_epoch_open("own", &options);
  model_as(A, fill);
}
static void with_thin_cell(void) {
  open_small_cells(thin_older);
  model_as(B, tend_cells);
}
static void write_page(unsigned index) { memset(blocks[index], 7, PAGE_BYTES); }
static void drop_and_write(void) {
  EXPECT(tslab_scope_enter(&scopes[A], epoch) == 0);
  free_block(3);
  cut_blocks(6, 9);
  write_page(8);
  leave_epoch();
}
static void check_page(void) {
  for (size_t i = 0; i < PAGE_BYTES; i++) EXPECT(((const char *)blocks[8])[i] == 7);
  free_rest();
  close_epoch();
}

// The helper takes a part that has ended off its list while A grows it in another epoch.
enum { IN_TWO_CELLS = 5 };
static struct tsl_part *ended_part;
static void grow_part(void) {
  epoch = open_cells();
  enter_and_note();
  cut_blocks(0, IN_TWO_CELLS);
  leave_epoch();
}
static void grow_and_end(void) {
  grow_part();
  memset(blocks, 0, sizeof blocks);
  EXPECT(tslab_epoch_release(epoch) == 0);
  tsl_warm_drop(tsl_heap_current->home);
}
static void with_ended_part(void) {
  warm_all();
  model_as(A, grow_and_end);
  EXPECT(part_of_a->is_grown);
  ended_part = part_of_a;
}
static void tend_parts(void) {
  tsl_store_relaxed(&part_of_a->heap.home->loosened, 1);
  tsl_rounds_step();
}
static void check_list(void) {
  EXPECT(part_of_a == ended_part && part_of_a->is_grown && part_of_a->grown_next == 0);
  EXPECT(part_of_a->heap.home->own->grown == part_of_a->heap.number);
  free_rest();
  close_epoch();
}

static void enter_epoch(void) { EXPECT(tslab_scope_enter(&scopes[A], epoch) == 0); }
static void full_slab(void) {
  warm_all();
  epoch = open_slabs();
  allocate_in_epoch(A, 0, 8, EIGHTH_BYTES);
  model_as(A, enter_epoch);
}
static void reuse_and_leave(void) {
  allocate_again();
  EXPECT(tslab_scope_leave(&scopes[A]) == 0);
}

static void part_with_block(void) {
  warm_all();
  epoch = open_slabs();
  allocate_in_epoch(A, 0, 1, BLOCK_BYTES);
}
static void two_lives(void) {
  close_epoch();
  epoch = open_slabs();
  blocks[1] = tslab_epoch_malloc(epoch, BLOCK_BYTES);
  EXPECT(blocks[1] != NULL);
  model_set(&flag);
  close_epoch();
}
static void two_lives_alone(void) {
  close_epoch();
  epoch = open_slabs();
  blocks[1] = tslab_epoch_malloc(epoch, BLOCK_BYTES);
  close_epoch();
}
static void free_1_later(void) {
  model_await(&flag);
  free_block(1);
}

// Two parts of A's come home while it wants one.
static void two_parts(void) {
  warm_all();
  epoch = open_slabs();
  allocate_in_epoch(A, 0, 1, BLOCK_BYTES);
  second = epoch;
  epoch = open_slabs();
  allocate_in_epoch(A, 1, 1, BLOCK_BYTES);
  third = open_slabs();
}
static void close_second(void) { EXPECT(tslab_epoch_close(second).error == 0); }
static void join_third(void) {
  EXPECT(tslab_scope_enter(&scopes[A], third) == 0);
  EXPECT(tslab_scope_leave(&scopes[A]) == 0);
}
static void finish_third(void) {
  EXPECT(tslab_epoch_close(third).error == 0);
  free_rest();
}

static tslab_epoch open_child(void) {
  tslab_epoch_options options = {
      .size = sizeof options, .parent = parent, .first_cell_bytes = TSLAB_NO_CELLS};
  return tslab_epoch_open("child", &options);
}
static void with_parent(void) {
  warm_all();
  parent = open_slabs();
}
static void with_child(void) {
  with_parent();
  epoch = open_child();
  allocate_in_epoch(A, 0, 1, BLOCK_BYTES);
}
static void close_parent(void) { EXPECT(tslab_epoch_close(parent).error == 0); }
static void release_parent(void) { EXPECT(tslab_epoch_release(parent) == 0); }
static void child_comes_and_goes(void) {
  epoch = open_child();
  EXPECT(epoch != TSLAB_NO_EPOCH || errno == ECANCELED || errno == ESTALE);
  if (epoch != TSLAB_NO_EPOCH) close_epoch();
}
static void release_child(void) { release_epoch(); }

static void with_large(void) {
  warm_all();
  epoch = open_slabs();
  allocate_in_epoch(A, 0, 2, LARGE_BYTES);
}

static unsigned deferred_runs, deferred_taken;
static void deferred(void *nothing) {
  (void)nothing;
  deferred_runs++;
}
static void defer(void) {
  int error = tslab_epoch_defer(epoch, deferred, NULL);
  EXPECT(error == 0 || error == ECANCELED || error == ESTALE);
  deferred_taken += error == 0;
}
static void opened(void) {
  warm_all();
  epoch = open_slabs();
}
static void count_deferred(void) { EXPECT(deferred_runs == deferred_taken); }

#define SCENARIO(name_, prepare_, ...) \
  .name = (name_), .prepare = (prepare_), .threads = {__VA_ARGS__}, .finish = free_rest

const struct model_scenario heap_scenarios[] = {
    {SCENARIO("ready-collect", nearly_empty, collect_twice, free_0, free_1)},
    {.name = "tend-refill",
     .prepare = nearly_empty,
     .threads = {refill_and_write, tend},
     .finish = finish_written,
     .delays_changing = true,
     .purges = true},
    {.name = "tend-refill-no-barrier",
     .prepare = nearly_empty,
     .threads = {refill_and_write, tend},
     .finish = finish_written,
     .delays_changing = true,
     .purges = true,
     .fails = true},
    {.name = "tend-refill-shared",
     .prepare = nearly_empty_inside,
     .threads = {refill_inside, tend},
     .finish = finish_written_inside,
     .delays_changing = true,
     .purges = true},
    {.name = "tend-free-shared",
     .prepare = nearly_empty_inside,
     .threads = {free_outside_and_refill, tend},
     .finish = finish_written_inside,
     .delays_changing = true,
     .purges = true},
    {.name = "free-outside-shared",
     .prepare = nearly_empty_inside,
     .threads = {free_outside_and_refill, free_1},
     .finish = finish_written_inside},
    {.name = "gather-shared",
     .prepare = nearly_empty_inside,
     .threads = {refill_inside, free_together},
     .finish = finish_written_inside},
    {.name = "tend-seal",
     .prepare = dead_part,
     .threads = {tend_part, close_and_write},
     .finish = check_written,
     .purges = true},
    {.name = "tend-release",
     .prepare = dead_part,
     .threads = {tend_part, release_and_write},
     .finish = check_written,
     .purges = true},
    {.name = "tend-cells",
     .prepare = with_thin_cell,
     .threads = {drop_and_write, tend_cells},
     .finish = check_page,
     .delays_changing = true,
     .purges = true},
    {.name = "tend-grown",
     .prepare = with_ended_part,
     .threads = {grow_part, tend_parts},
     .finish = check_list,
     .delays_changing = true},
    {.name = "tend-warm",
     .prepare = with_warm_part,
     .threads = {take_warm, tend_warm},
     .finish = check_warm,
     .delays_changing = true,
     .purges = true},
    {.name = "tend-warm-no-barrier",
     .prepare = with_warm_part,
     .threads = {take_warm, tend_warm},
     .finish = check_warm,
     .delays_changing = true,
     .purges = true,
     .fails = true},
    {.name = "tend-settle",
     .prepare = nearly_empty,
     .threads = {collect_twice, tend, free_0},
     .finish = free_rest,
     .delays_changing = true,
     .purges = true},
    {SCENARIO("ready-collect-words", nearly_empty_words, collect_twice, free_0, free_64)},
    {SCENARIO("ready-gather", nearly_empty, collect_twice, free_together)},
    {SCENARIO("ready-refill", nearly_empty, refill, free_0, free_1)},
    {SCENARIO("pool-take", a_and_c, exit_thread, allocate_first, free_0)},
    {SCENARIO("pool-look", pooled, look, allocate_first, free_0)},
    {SCENARIO("orphans-adopt", without_c, tsl_orphans_adopt, begin_and_free)},
    {.name = "orphans-adopt-twice",
     .prepare = without_c,
     .threads = {tsl_orphans_adopt, begin_and_adopt},
     .finish = take_two},
    {SCENARIO("hand-over", full_slab, reuse_and_leave, free_0, close_epoch)},
    {SCENARIO("part-two-lives", part_with_block, two_lives_alone, free_0)},
    {SCENARIO("part-two-lives-3", part_with_block, two_lives, free_0, free_1_later)},
    {.name = "return-parts",
     .prepare = two_parts,
     .threads = {join_third, close_epoch, close_second},
     .finish = finish_third},
    {SCENARIO("child-close", with_child, close_epoch, close_parent, free_0)},
    {SCENARIO("child-open", with_parent, child_comes_and_goes, close_parent)},
    {.name = "child-open-release",
     .prepare = with_parent,
     .threads = {child_comes_and_goes, release_parent}},
    {.name = "child-release", .prepare = with_child, .threads = {release_child, release_parent}},
    {SCENARIO("large-close", with_large, free_0, close_epoch)},
    {.name = "defer-close",
     .prepare = opened,
     .threads = {defer, close_epoch, defer},
     .finish = count_deferred},
    {0}};
