#include "alloc/thread.h"

#include <limits.h>

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "memory/segment.h"
#include "os_fake.h"
#include "pattern.h"
#include "state.h"
#include "threads.h"
#include "upkeep/pool.h"

enum { SLOTS = 64, ROUNDS = 20000, DESTRUCTOR_ROUNDS = _POSIX_THREAD_DESTRUCTOR_ITERATIONS };

static void *alloc(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  pattern_write(block, bytes, 1);
  return block;
}

static void a_thread_has_one_heap(void) {
  CHECK(tsl_heap_current == &tsl_home_empty.heap);
  alloc(10);
  struct tsl_heap *mine = tsl_heap_current;
  CHECK(mine != &tsl_home_empty.heap);
  CHECK(tsl_heap_is_home(mine));
  alloc(100);
  alloc(100000);
  CHECK(tsl_heap_current == mine);
  CHECK_EQ(tsl_region.last_heap, 1);
}

static void *alloc_and_free(void *unused) {
  void *one = alloc(100), *two = alloc(5000), *three = alloc(100000);
  tsl_fast_free(one);
  tsl_fast_free(two);
  tsl_fast_free(three);
  return unused;
}

// Threads that come one after the other share a heap, still warm.
static void heaps_outlive_threads(void) {
  threads_run_one(alloc_and_free, NULL);
  uint64_t commits = os_fake.calls[OS_FAKE_COMMIT];
  for (int i = 0; i < 50; i++) threads_run_one(alloc_and_free, NULL);
  CHECK_EQ(tsl_region.last_heap, 1);
  CHECK_EQ(os_fake.calls[OS_FAKE_COMMIT], commits);
  state_check();
}

static void *alloc_for_others(void *blocks) {
  for (int i = 0; i < SLOTS; i++) ((void **)blocks)[i] = alloc(700);
  return NULL;
}

static void blocks_outlive_their_thread(void) {
  void *blocks[SLOTS];
  alloc(1);
  threads_run_one(alloc_for_others, blocks);
  for (int i = 0; i < SLOTS; i++) {
    CHECK(pattern_is(blocks[i], 700, 1, 700));
    tsl_fast_free(blocks[i]);
  }
  state_check();
  tsl_trim(0);
  CHECK_EQ(state_owned_units(), 1);
}

static void *fill_and_free(void *unused) {
  static void *blocks[1 << 12];
  unsigned count = 0;
  while ((blocks[count] = tsl_fast_malloc(8000)) != NULL) count++;
  CHECK(count > 1000);
  while (count != 0) tsl_fast_free(blocks[--count]);
  return unused;
}

static void memory_of_ended_threads_serves(void) {
  tsl_options.reserve = (size_t)16 << 20;
  threads_run_one(fill_and_free, NULL);
  CHECK(tsl_fast_malloc((size_t)13 << 20) != NULL);
  CHECK_REFUSED(tsl_fast_malloc((size_t)13 << 20), ENOMEM);
  state_check();
}

static void free_without_a_heap(void) {
  void *blocks[SLOTS];
  threads_run_one(alloc_for_others, blocks);
  CHECK(tsl_heap_current == &tsl_home_empty.heap);
  for (int i = 0; i < SLOTS; i++) tsl_fast_free(blocks[i]);
  CHECK(tsl_heap_current != &tsl_home_empty.heap);
  state_check();
}

static void *one_try(void *expected) {
  errno = 0;
  void *block = tsl_fast_malloc(100);
  CHECK_EQ(block != NULL, expected != NULL);
  CHECK_EQ(errno, block == NULL ? ENOMEM : 0);
  return NULL;
}

static void no_memory_for_a_heap(void) {
  int something;
  tsl_options.reserve = (size_t)32 << 20;
  alloc(1);
  struct tsl_heap *mine = tsl_heap_current;
  while (tsl_home_take() != NULL) continue;
  threads_run_one(one_try, NULL);
  tsl_home_pool(tsl_heap_at(2)->home);
  threads_run_one(one_try, &something);
  threads_run_one(one_try, &something);
  CHECK(tsl_heap_current == mine);
  state_check();
}

// Destructors of other keys may allocate, in every round and after our last one.
static pthread_key_t key;
static int destructor_calls;

static void destructor(void *value) {
  void *block = alloc(300), *large = alloc(100000);
  tsl_fast_free(block);
  tsl_fast_free(large);
  tsl_fast_free(value);
  int calls = tsl_add_relaxed(&destructor_calls, 1) + 1;
  if (calls < DESTRUCTOR_ROUNDS) pthread_setspecific(key, alloc(200));
}

static void *leave_to_destructors(void *unused) {
  CHECK_EQ(pthread_setspecific(key, alloc(200)), 0);
  return unused;
}

static void destructors_allocate(void) {
  alloc(1);  // our own key comes first, so that the other one's last call comes after ours
  CHECK_EQ(pthread_key_create(&key, destructor), 0);
  for (int i = 0; i < 20; i++) {
    tsl_store_relaxed(&destructor_calls, 0);
    threads_run_one(leave_to_destructors, NULL);
    CHECK_EQ(tsl_load_relaxed(&destructor_calls), DESTRUCTOR_ROUNDS);
  }
  CHECK_LE(tsl_region.last_heap, 3);
  tsl_trim(0);
  CHECK_EQ(state_owned_units(), 1);
  state_check();
}

// All threads take blocks from shared places, check them, free them and put new ones there.
static struct item {
  size_t bytes;
  unsigned seed;
  unsigned char content[];
} * slots[SLOTS];
static uint64_t seeds;

static struct item *item_new(uint64_t *seed) {
  static const unsigned most[] = {64, 64, 256, 1024, 1024, 8192, 40000, 150000};
  size_t bytes = test_random_below(seed, most[test_random_below(seed, 8)]);
  struct item *item = tsl_fast_malloc(sizeof *item + bytes);
  CHECK(item != NULL);
  *item = (struct item){bytes, (unsigned)test_random(seed)};
  pattern_write(item->content, bytes, item->seed);
  return item;
}

static void item_end(struct item *item) {
  if (item == NULL) return;
  CHECK(pattern_is(item->content, item->bytes, item->seed, item->bytes));
  tsl_fast_free(item);
}

static void *exchange_items(void *unused) {
  uint64_t seed = tsl_add_relaxed(&seeds, 1);
  for (int i = 0; i < ROUNDS / THREADS; i++) {
    struct item **slot = &slots[test_random_below(&seed, SLOTS)];
    item_end(tsl_exchange_acq_rel(slot, item_new(&seed)));
    if (i % 512 == 0) tsl_add_relaxed(&os_fake.now_ms, 1);
    if (i % 2048 == 0) tsl_trim(1 << 20);
  }
  return unused;
}

static void threads_exchange_blocks(void) {
  tsl_options.purge_delay_ms = 1;
  for (int round = 0; round < 3; round++) {
    threads_run(exchange_items, NULL);
    state_check();
  }
  CHECK_LE(tsl_region.last_heap, 2 * THREADS);
  for (int i = 0; i < SLOTS; i++) item_end(slots[i]);
  tsl_trim(0);
  CHECK_EQ(state_owned_units(), 0);
  CHECK_EQ(tsl_units_dirty(), 0);
  state_check();
}

// Many threads meet the library for the first time.
static void *first_alloc(void *unused) {
  tsl_fast_free(alloc(50));
  return unused;
}

static void initialised_once(void) {
  threads_run(first_alloc, NULL);
  CHECK_EQ(os_fake.calls[OS_FAKE_PLACE], 1);
  CHECK_LE(tsl_region.last_heap, THREADS);
  state_check();
}

int main(void) {
  RUN(a_thread_has_one_heap);
  RUN(heaps_outlive_threads);
  RUN(blocks_outlive_their_thread);
  RUN(memory_of_ended_threads_serves);
  RUN(free_without_a_heap);
  RUN(no_memory_for_a_heap);
  RUN(destructors_allocate);
  RUN(threads_exchange_blocks);
  RUN(initialised_once);
  return test_status();
}
