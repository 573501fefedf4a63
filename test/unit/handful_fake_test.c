#include "heap/handful.h"

#include "blocks.h"
#include "state.h"
#include "upkeep/collect.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

// The bin keeps one block for the fast path's sake, and gives it away when there is nothing else.
static void last_block(void) {
  open_heaps();
  void *first = alloc(32768), *second = alloc(32768);
  tsl_fast_free(first);
  os_fake_fail_all(OS_FAKE_COMMIT);
  bool found = false;
  for (void *block; (block = tsl_fast_malloc(32768)) != NULL;) found |= block == first;
  CHECK(found);
  CHECK_EQ(errno, ENOMEM);
  CHECK(tsl_fast_malloc(32768) == NULL);
  state_check();
  tsl_fast_free(second);
  CHECK(tsl_fast_malloc(32768) == second);
  CHECK(tsl_fast_malloc(32768) == NULL);
  state_check();
}

// One refill looks at a few slabs only, however many have remote frees.
static void refill_has_a_budget(void) {
  open_heaps();
  alloc_many(1024, 64 * 40);
  free_many_as(other);
  size_t owned = state_owned_units();
  alloc_many(1024, 64 + 1);
  CHECK_GE(state_owned_units(), owned - 2 * 4);
  CHECK(heap->pending != 0);
  state_check();
  tsl_home_collect(heap->home);
  CHECK_EQ(heap->pending, 0);
  state_check();
}

int main(void) {
  RUN(last_block);
  RUN_UNLESS_SECURE(refill_has_a_budget);
  return test_status();
}
