#include "state/owner.h"

#include "blocks.h"
#include "heap/cells.h"
#include "heap/count.h"
#include "heap/handful.h"
#include "heap/home_units.h"
#include "heap/loose.h"
#include "heap/mixed.h"
#include "heap/remote.h"
#include "heap/sampled.h"
#include "heap/store.h"
#include "heap/visit.h"
#include "tell/points.h"
#include "upkeep/collect.h"
#include "upkeep/pool.h"
#include "upkeep/sparse.h"
#include "upkeep/tick.h"

static struct tsl_heap *mine, *other;
static struct tsl_part *others_part;
static uint32_t epoch;  // a slot
static void *block;     // the other's

static void open_heaps(void) { blocks_open((size_t)1 << 27, &mine, &other); }

static void heaps_of_the_thread(void) {
  tslab_epoch id;
  open_heaps();
  struct tsl_heap *part = blocks_open_part(mine, TSLAB_NO_CELLS, &id);
  CHECK(tsl_owner_is_me(mine));
  CHECK(tsl_owner_is_me(part));
  CHECK(!tsl_owner_is_me(other));
  tsl_heap_current = other;
  CHECK(!tsl_owner_is_me(part));
  tsl_part_of(part)->sealing = TSL_PART_SEALING;
  CHECK(tsl_owner_is_me(part));
}

static bool was_mine;
static void look(struct tsl_home *home) { was_mine = tsl_owner_is_me(&home->heap); }

static void pooled_heaps_that_are_visited(void) {
  open_heaps();
  tsl_home_pool(other->home);
  CHECK(!tsl_owner_is_me(other));
  tsl_pool_visit(look);
  CHECK_EQ(was_mine, TSL_DEBUG >= 1);
  CHECK(!tsl_owner_is_me(other));
}

static void look_at(struct tsl_heap *heap TSL_UNUSED) {}
static unsigned class_of_block(void) { return tsl_sizeclass_of(64); }

static void bin_push(void) { tsl_bin_push(other, class_of_block(), block); }
static void bin_pop(void) { tsl_bin_pop(other, class_of_block()); }
static void bin_take(void) { tsl_bin_take(other, class_of_block(), &(bool){false}); }
static void bin_passed(void) { tsl_bin_passed(other, class_of_block(), 1); }
static void bin_shorten(void) { tsl_bin_shorten(other, class_of_block(), 1); }
static void bin_refilled(void) { tsl_bin_refilled(other, class_of_block()); }
static void bin_check(void) { tsl_bin_check(other, class_of_block()); }
static void tally(void) { tsl_heap_tally(other, 0)->sent++; }
static void store_open(void) { tsl_store_open(other); }
static void store_renew(void) { tsl_store_renew(other); }
static void part_add(void) { tsl_part_add(other->home); }
static void part_take(void) { tsl_part_take(other->home, epoch); }
static void part_renew(void) { tsl_part_renew(others_part); }
static void part_share(void) { tsl_part_share(others_part); }
static void part_visit(void) { tsl_part_visit_inside(other, look_at); }
static void part_turn(void) { tsl_part_visit_next(other->home, look_at); }
static void loose_add(void) { tsl_loose_add(other, 0, 1); }
static void loose_hot(void) { tsl_loose_add_hot(other->home); }
static void points_within(void) { tsl_points_within(other, 1); }
static void points_until(void) { tsl_points_until(other, 0, 1); }
static void points_handful(void) { tsl_points_take_cut(other, 0); }
static void points_count(void) { tsl_points_count(other->home, 1); }
static void points_large(void) { tsl_points_of_large(other, 1); }
static void sampled_small(void) { tsl_sampled_small(other, 0, 1); }
static void sampled_handful(void) { tsl_sampled_handful(other, 0, 0, &(uint32_t){0}); }
static void visit_tick(void) { tsl_visit_tick(other->home); }
static void visit_has(void) {
  struct tsl_position position = tsl_slab_position(class_of_block(), block);
  tsl_visit_has(other->home, class_of_block(), position, block);
}
static void remote_send(void) { tsl_remote_send(other->home, 0); }
static void remote_forget(void) { tsl_remote_forget(other->home); }
static void remote_gather(void) {
  tsl_remote_gather(other->home, mine->number, class_of_block(), block);
}
static void count(void) { tsl_heap_count(other, 0); }
static void redraw(void) { tsl_heap_redraw(other); }
static void wake(void) { tsl_home_wake(other->home); }
static void put(void) { tsl_heap_put_plainly(other, class_of_block(), block); }
static void mixed_retire(void) { tsl_mixed_retire(other); }
static void mixed_redraw(void) { tsl_mixed_redraw(other); }
static void mixed_refill(void) { tsl_mixed_refill(other, 0); }
static void mixed_aligned(void) { tsl_mixed_aligned(other, 0, 16); }
static void units_take(void) { tsl_home_units_take(other->home, 1); }
static void handful(void) { tsl_heap_take_handful(other, 0, 0); }
static void rest(void) { tsl_heap_rest(other); }
static void sparse(void) { tsl_sparse_step(other); }
static void collect(void) { tsl_home_collect(other->home); }
static void tick(void) { tsl_home_tick(other->home); }
static void refilled(void) { tsl_home_refilled(other->home); }
static void follow_samples_of_heap(void) { tsl_heap_follow_samples(other); }
static void follow_samples(void) { tsl_home_follow_samples(other->home); }
static void recount(void) { tsl_heap_recount(other, 0); }
static void scope_tell(void) { tsl_scope_tell(other); }
static void scope_leave_all(void) { tsl_scope_leave_all(other->home); }
static void scope_leave(void) { tsl_scope_leave_heap(other); }
static void scope_visit(void) { tsl_scope_visit_begin(other, TSLAB_DEFAULT); }

// What changes [owner] fields, and the file that has to notice whose they are.
static const struct {
  void (*change)(void);
  const char *file;
} changes[] = {
    {bin_push, "state/bin.c"},
    {bin_pop, "state/bin.c"},
    {bin_take, "state/bin.c"},
    {bin_passed, "state/bin.c"},
    {bin_shorten, "state/bin.c"},
    {bin_refilled, "state/bin.c"},
    {bin_check, "state/bin.c"},
    {tally, "state/owner.h"},
    {store_open, "heap/store.c"},
    {store_renew, "heap/store.c"},
    {part_add, "heap/store.c"},
    {part_take, "heap/part.c"},
    {part_renew, "heap/part.c"},
    {part_share, "heap/part.c"},
    {part_visit, "heap/part.c"},
    {part_turn, "heap/part.c"},
    {loose_add, "heap/loose.c"},
    {loose_hot, "heap/loose.c"},
    {points_within, "tell/points.c"},
    {points_until, "tell/points.c"},
    {points_handful, "tell/points.c"},
    {points_count, "tell/points.c"},
    {points_large, "tell/points.c"},
    {sampled_small, "heap/sampled.c"},
    {sampled_handful, "heap/sampled.c"},
    {visit_tick, "heap/visit.c"},
    {visit_has, "heap/visit.c"},
    {remote_send, "heap/remote.c"},
    {remote_forget, "heap/remote.c"},
    {remote_gather, "heap/remote.c"},
    {count, "heap/count.c"},
    {redraw, "heap/count.c"},
    {wake, "heap/count.c"},
    {put, "heap/freed.c"},
    {mixed_retire, "heap/mixed.c"},
    {mixed_redraw, "heap/mixed.c"},
    {mixed_refill, "heap/mixed.c"},
    {mixed_aligned, "heap/mixed.c"},
    {units_take, "heap/home_units.c"},
    {handful, "heap/handful.c"},
    {rest, "heap/rest.c"},
    {sparse, "upkeep/sparse.c"},
    {collect, "upkeep/collect.c"},
    {tick, "upkeep/tick.c"},
    {refilled, "upkeep/tick.c"},
    {follow_samples_of_heap, "upkeep/tick.c"},
    {follow_samples, "upkeep/tick.c"},
    {recount, "upkeep/tick.c"},
    {scope_tell, "epoch/scope.c"},
    {scope_leave_all, "epoch/scope.c"},
    {scope_leave, "epoch/scope.h"},
    {scope_visit, "epoch/scope.h"},
};

// H1
static void anothers_fields_are_left_alone(void) {
  tslab_epoch id;
  open_heaps();
  CHECK_EQ(tsl_epoch_open(0, NULL, &id), 0);
  epoch = tsl_epoch_slot(id);
  tsl_heap_current = other;
  block = alloc(64);
  others_part = tsl_part_of(blocks_take_part(other));
  tsl_heap_current = mine;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    bool is_noticed = capture_aborts(changes[i].change) &&
                      strstr(capture_text, "tsl_owner_is_me(") != NULL &&
                      strstr(capture_text, changes[i].file) != NULL;
    if (is_noticed != (TSL_DEBUG >= 1)) printf("%s, change %zu\n", changes[i].file, i);
    CHECK_EQ(is_noticed, TSL_DEBUG >= 1);
  }
}

int main(void) {
  RUN(heaps_of_the_thread);
  RUN(pooled_heaps_that_are_visited);
  RUN(anothers_fields_are_left_alone);
  return test_status();
}
