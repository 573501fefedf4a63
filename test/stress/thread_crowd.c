// thread_crowd: 2,000 threads at once, then 20,000 one after the other; memory stays in proportion
// to those alive.
#include <limits.h>
#include <pthread.h>

#include "shadow.h"

enum {
  CROWD = 2000,
  CROWD_BLOCKS = 40,
  CHURN = 20000,
  CHURN_WARM = 4000,
  CHURN_AT_ONCE = 8,
  CHURN_BLOCKS = 60,
};

// What a thread may cost with its blocks, and how much may stay when all are gone and memory has
// been trimmed; the same of 16,000 threads one after the other.
#define CROWD_BYTES_PER_THREAD (192 * KIB)
#define CROWD_BYTES_LEFT (64 * MIB)
#define CHURN_BYTES_LEFT (16 * MIB)
#define CHURN_MAPPED_LEFT (256 * MIB)

static pthread_barrier_t all_here, all_done;
static pthread_attr_t small_stack;

static void small_stack_make(void) {
  CHECK_EQ(pthread_attr_init(&small_stack), 0);
  CHECK_EQ(pthread_attr_setstacksize(&small_stack, (size_t)PTHREAD_STACK_MIN + 32 * KIB), 0);
}

static void blocks_take(struct shadow *blocks, int count, struct random *random) {
  for (int i = 0; i < count; i++) {
    size_t size = random_size(random, 10);
    CHECK(shadow_take(&blocks[i], allocator_malloc(size), size, random_next(random)));
  }
}

static void *crowd_member(void *data) {
  struct random random = {(uintptr_t)data};
  struct shadow blocks[CROWD_BLOCKS];
  blocks_take(blocks, CROWD_BLOCKS, &random);
  pthread_barrier_wait(&all_here);
  pthread_barrier_wait(&all_done);
  for (int i = 0; i < CROWD_BLOCKS; i++) shadow_drop(&blocks[i]);
  return NULL;
}

static void crowd_test(void) {
  static pthread_t threads[CROWD];
  size_t before = process_resident_bytes();
  CHECK_EQ(pthread_barrier_init(&all_here, NULL, CROWD + 1), 0);
  CHECK_EQ(pthread_barrier_init(&all_done, NULL, CROWD + 1), 0);
  for (uintptr_t i = 0; i < CROWD; i++)
    CHECK_EQ(pthread_create(&threads[i], &small_stack, crowd_member, (void *)i), 0);
  pthread_barrier_wait(&all_here);
  size_t during = process_resident_bytes();
  dprintf(STDOUT_FILENO, "crowd: %zu KiB resident for each thread\n",
          (during - before) / CROWD / KIB);
  CHECK_LE(during - before, CROWD * CROWD_BYTES_PER_THREAD);
  pthread_barrier_wait(&all_done);
  for (int i = 0; i < CROWD; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  allocator_trim(0);
  dprintf(STDOUT_FILENO, "crowd gone: %zu KiB resident\n", process_resident_bytes() / KIB);
  CHECK_LE(process_resident_bytes(), before + CROWD_BYTES_LEFT);
}

// Frees what the thread before it left, and leaves as much to the next.
struct place {
  pthread_t thread;
  struct random random;
  struct shadow blocks[CHURN_BLOCKS];
};

static void *churn_member(void *data) {
  struct place *place = data;
  struct shadow own[CHURN_BLOCKS];
  blocks_take(own, CHURN_BLOCKS, &place->random);
  for (int i = 0; i < CHURN_BLOCKS; i++) shadow_drop(&place->blocks[i]);
  blocks_take(place->blocks, CHURN_BLOCKS, &place->random);
  for (int i = 0; i < CHURN_BLOCKS; i++) shadow_drop(&own[i]);
  return NULL;
}

static void churn_run(struct place *places, int threads) {
  for (int done = 0; done < threads; done += CHURN_AT_ONCE) {
    for (int i = 0; i < CHURN_AT_ONCE; i++)
      CHECK_EQ(pthread_create(&places[i].thread, &small_stack, churn_member, &places[i]), 0);
    for (int i = 0; i < CHURN_AT_ONCE; i++) CHECK_EQ(pthread_join(places[i].thread, NULL), 0);
  }
}

static void churn_test(void) {
  static struct place places[CHURN_AT_ONCE];
  for (unsigned i = 0; i < CHURN_AT_ONCE; i++) places[i].random.state = i;
  churn_run(places, CHURN_WARM);
  size_t resident = process_resident_bytes(), mapped = process_mapped_bytes();
  churn_run(places, CHURN - CHURN_WARM);
  dprintf(STDOUT_FILENO, "churn: %zu KiB resident before, %zu after\n", resident / KIB,
          process_resident_bytes() / KIB);
  CHECK_LE(process_resident_bytes(), resident + CHURN_BYTES_LEFT);
  CHECK_LE(process_mapped_bytes(), mapped + CHURN_MAPPED_LEFT);
  for (int place = 0; place < CHURN_AT_ONCE; place++)
    for (int i = 0; i < CHURN_BLOCKS; i++) shadow_drop(&places[place].blocks[i]);
}

int main(void) {
  small_stack_make();
  churn_test();
  crowd_test();
  churn_test();
  return 0;
}
