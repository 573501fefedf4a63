#include "state/heap.h"

#include "blocks.h"
#include "state.h"
#include "takes.h"
#include "upkeep/collect.h"

enum { MOST_HELD = 20000, SIZES = 12, STEPS = 20000 };
static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static void new_heaps_are_empty(void) {
  open_heaps();
  CHECK_EQ(heap->number, 1);
  CHECK_EQ(other->number, 2);
  CHECK_EQ(other->tag, 2 << TSL_CODE_BITS);
  CHECK(tsl_heap_is_home(heap));
  state_check();
  CHECK_EQ(tsl_units_open(), 0);
}

static void blocks_belong_to_the_heap(void) {
  open_heaps();
  for (size_t bytes = TSL_SECURE ? 1 : 0; bytes <= TSL_CANARY_LIMIT; bytes += bytes / 16 + 1) {
    void *block = alloc(bytes);
    unsigned class = takes_class(bytes);
    struct tsl_position position = tsl_slab_position(class, block);
    CHECK_EQ(tsl_map_lookup(block), heap->tag | class * 2);
    CHECK(position.index >= 0);
    CHECK_EQ(position.slab->class, class);
  }
  state_check();
}

static void blocks_are_distinct(void) {
  open_heaps();
  alloc_many(48, 5000);
  for (unsigned i = 0; i < block_count; i++) *(unsigned *)blocks[i] = i;
  for (unsigned i = 0; i < block_count; i++) CHECK_EQ(*(unsigned *)blocks[i], i);
  state_check();
}

static void last_freed_is_first_allocated(void) {
  open_heaps();
  alloc_many(64, 10);
  void *one = blocks[3], *two = blocks[7], *three = blocks[5];
  tsl_fast_free(one);
  tsl_fast_free(two);
  tsl_fast_free(three);
  CHECK(alloc(64) == three);
  CHECK(alloc(64) == two);
  state_check();
}

// The static heap of threads that have none is never written: no operation may change it.
static void empty_heap_stays_empty(void) {
  static struct tsl_heap before;
  open_heaps();
  void *block = alloc(3000), *large = tsl_malloc_large(100000, 1, NULL);
  memcpy(&before, &tsl_home_empty.heap, sizeof before);
  tsl_heap_current = &tsl_home_empty.heap;
  tsl_fast_free(block);
  tsl_fast_free(large);
  tsl_fast_free(NULL);
  tsl_trim(0);
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding is not written either
  CHECK(memcmp(&before, &tsl_home_empty.heap, sizeof before) == 0);
}

// Random operations of two heaps on each other's blocks.
static struct live {
  unsigned char *address;
  size_t bytes;
  unsigned char value;
} live[400];

static void live_check(const struct live *at) {
  for (size_t i = 0; i < at->bytes; i += 61) CHECK_EQ(at->address[i], at->value);
}

static void random_operation(uint64_t *seed) {
  static const size_t most[SIZES] = {16, 16, 64, 64, 64, 256, 256, 1024, 1024, 4096, 8192, 32768};
  struct live *at = &live[test_random_below(seed, sizeof live / sizeof *live)];
  tsl_heap_current = test_random_below(seed, 2) == 0 ? heap : other;
  if (test_random_below(seed, 500) == 0) tsl_home_collect(tsl_heap_current->home);
  if (at->address != NULL) {
    live_check(at);
    tsl_fast_free(at->address);
    at->address = NULL;
    return;
  }
  size_t bytes = test_random_below(seed, 1 + (unsigned)most[test_random_below(seed, SIZES)]);
  *at = (struct live){tsl_fast_malloc(bytes), bytes, (unsigned char)test_random(seed)};
  CHECK(at->address != NULL);
  memset(at->address, at->value, bytes);
}

static void random_operations(void) {
  uint64_t seed = 9;
  open_heaps();
  for (int step = 0; step < STEPS; step++) {
    check_context_set("step %d", step);
    random_operation(&seed);
    if (step % 100 == 0) state_check();
  }
  for (struct live *at = live; at < live + sizeof live / sizeof *live; at++) {
    if (at->address != NULL) tsl_fast_free(at->address);
  }
  tsl_home_pool(other->home);
  tsl_heap_current = heap;
  tsl_heap_collect_all();
  CHECK_EQ(state_owned_units(), 0);
  state_check();
}

static struct tsl_heap *part;

static void take_a_home_for_a_part(void) { CHECK(tsl_part_of(heap) != NULL); }
static void take_a_part_for_a_home(void) { CHECK(tsl_home_of(part) != NULL); }

static void heaps_are_taken_for_what_they_are(void) {
  tslab_epoch id;
  open_heaps();
  part = blocks_open_part(heap, 0, &id);
  CHECK(tsl_heap_is_home(heap) && !tsl_heap_is_home(part));
  CHECK(&tsl_home_of(heap)->heap == heap && &tsl_part_of(part)->heap == part);
  CHECK_EQ(capture_aborts(take_a_home_for_a_part), TSL_DEBUG >= 1);
  CHECK_EQ(capture_aborts(take_a_part_for_a_home), TSL_DEBUG >= 1);
}

int main(void) {
  RUN(new_heaps_are_empty);
  RUN(heaps_are_taken_for_what_they_are);
  RUN(blocks_belong_to_the_heap);
  RUN(blocks_are_distinct);
  RUN_UNLESS_SECURE(last_freed_is_first_allocated);
  RUN(empty_heap_stays_empty);
  RUN(random_operations);
  return test_status();
}
