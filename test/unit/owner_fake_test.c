#include "state/owner.h"

#include "blocks.h"
#include "upkeep/collect.h"
#include "upkeep/pool.h"

static struct tsl_heap *mine, *other;

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

static void rest_anothers(void) { tsl_home_collect(other->home); }

// H1
static void anothers_lists_are_left_alone(void) {
  open_heaps();
  tsl_heap_current = other;
  alloc_many(64, 100);
  tsl_heap_current = mine;
  CHECK_EQ(capture_aborts(rest_anothers), TSL_DEBUG >= 1);
  CHECK_EQ(strstr(capture_text, "tsl_owner_is_me(heap)") != NULL, TSL_DEBUG >= 1);
}

int main(void) {
  RUN(heaps_of_the_thread);
  RUN(pooled_heaps_that_are_visited);
  RUN(anothers_lists_are_left_alone);
  return test_status();
}
