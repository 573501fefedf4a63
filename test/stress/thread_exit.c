// thread_exit: threads that end in every way: destructors that allocate, blocks that others free
// meanwhile, no join.
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "shadow.h"

enum { KEYS = 8, AT_ONCE = 4, HANDED = 20000, ROUNDS = 60 };
enum { LARGE_BYTES = 300 * KIB, PAGE_BYTES = 4 * KIB };

// A sanitizer keeps a record of every thread that ever was, and watches what threads do at the same
// time; what they leave behind is counted in builds without one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THREADS = 600, WARM = 100 };
#define BYTES_LEFT (96 * MIB)
#elif TSL_SECURE
enum { THREADS = 1000, WARM = 200 };
#define BYTES_LEFT (8 * MIB)
#else
enum { THREADS = 3000, WARM = 500 };
#define BYTES_LEFT (8 * MIB)
#endif

// ThreadSanitizer takes its own leave of a thread in the last round: no watched code may run then.
#ifdef __SANITIZE_THREAD__
#define VISITS (PTHREAD_DESTRUCTOR_ITERATIONS - 2)
#else
#define VISITS PTHREAD_DESTRUCTOR_ITERATIONS
#endif

static pthread_key_t keys[KEYS];
static atomic_long destructions;

struct visit {
  int round;
  size_t key;
};

// Comes back in every round that the system grants, each time with a fresh block for the next.
static void destructor(void *data) {
  struct visit visit = *(struct visit *)data;
  allocator_free(data);
  atomic_fetch_add(&destructions, 1);
  void *more = allocator_calloc(10, 100);
  volatile char *large = allocator_malloc(LARGE_BYTES);
  CHECK(more != NULL && large != NULL);
  for (size_t offset = 0; offset < LARGE_BYTES; offset += PAGE_BYTES) large[offset] = 1;
  allocator_free((char *)large);
  allocator_free(more);
  if (visit.round + 1 >= VISITS) return;
  struct visit *next = allocator_malloc(sizeof *next);
  *next = (struct visit){visit.round + 1, visit.key};
  CHECK_EQ(pthread_setspecific(keys[visit.key], next), 0);
}

static void *visitor_run(void *data) {
  for (size_t i = 0; i < KEYS; i++) {
    struct visit *visit = allocator_malloc(sizeof *visit);
    *visit = (struct visit){0, i};
    CHECK_EQ(pthread_setspecific(keys[i], visit), 0);
  }
  return data;
}

// Its first use of the allocator ever is inside a destructor.
static void *late_visitor_run(void *data) {
  static char not_ours;
  CHECK_EQ(pthread_setspecific(*(pthread_key_t *)data, &not_ours), 0);
  return NULL;
}

static void late_destructor(void *data) {
  (void)data;
  allocator_free(allocator_malloc(100));
}

static void threads_run(int count, void *(*function)(void *), void *data) {
  pthread_t threads[AT_ONCE];
  for (int done = 0; done < count; done += AT_ONCE) {
    for (int i = 0; i < AT_ONCE; i++)
      CHECK_EQ(pthread_create(&threads[i], NULL, function, data), 0);
    for (int i = 0; i < AT_ONCE; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  }
}

static void leak_check(void *(*function)(void *), void *data) {
  threads_run(WARM, function, data);
  size_t before = process_resident_bytes();
  threads_run(THREADS, function, data);
  CHECK_LE(process_resident_bytes(), before + BYTES_LEFT);
}

// Keys made before the allocator's own and after it, so that its turn comes in the middle.
static void destructors_test(void) {
  leak_check(visitor_run, NULL);
  CHECK_EQ(atomic_load(&destructions), (long)(THREADS + WARM) * KEYS * VISITS);
  pthread_key_t late;
  CHECK_EQ(pthread_key_create(&late, late_destructor), 0);
  leak_check(late_visitor_run, &late);
}

static struct shadow handed[HANDED];
static atomic_int handed_count;

static void *maker_run(void *data) {
  struct random random = {(uintptr_t)data};
  for (int i = 0; i < HANDED; i++) {
    size_t size = random_size(&random, 11);
    CHECK(shadow_take(&handed[i], allocator_malloc(size), size, random_next(&random)));
    atomic_store_explicit(&handed_count, i + 1, memory_order_release);
  }
  return NULL;
}

// Follows the maker closely, so that the last frees meet a thread that is ending or has just ended.
static void *freer_run(void *data) {
  for (int i = 0; i < HANDED; i++) {
    while (atomic_load_explicit(&handed_count, memory_order_acquire) <= i) continue;
    shadow_drop(&handed[i]);
  }
  return data;
}

static void orphans_test(void) {
  size_t before = 0;
  for (uintptr_t round = 0; round < ROUNDS; round++) {
    pthread_t maker, freer;
    atomic_store(&handed_count, 0);
    CHECK_EQ(pthread_create(&freer, NULL, freer_run, NULL), 0);
    CHECK_EQ(pthread_create(&maker, NULL, maker_run, (void *)round), 0);
    CHECK_EQ(pthread_join(maker, NULL), 0);
    CHECK_EQ(pthread_join(freer, NULL), 0);
    if (round == ROUNDS / 3) before = process_resident_bytes();
  }
  CHECK_LE(process_resident_bytes(), before + BYTES_LEFT);
}

// Blocks of a thread long gone.
static void after_the_end_test(void) {
  pthread_t maker;
  for (uintptr_t round = 0; round < 10; round++) {
    CHECK_EQ(pthread_create(&maker, NULL, maker_run, (void *)round), 0);
    CHECK_EQ(pthread_join(maker, NULL), 0);
    for (int i = 0; i < HANDED; i++) shadow_drop(&handed[HANDED - 1 - i]);
  }
}

static void *cancelled_run(void *data) {
  for (;;) {
    allocator_free(allocator_malloc(100));
    pthread_testcancel();
  }
  return data;
}

static void unusual_ends_test(void) {
  pthread_t thread;
  for (int i = 0; i < 200; i++) {
    CHECK_EQ(pthread_create(&thread, NULL, cancelled_run, NULL), 0);
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, visitor_run, NULL), 0);
    CHECK_EQ(pthread_detach(thread), 0);
  }
}

int main(void) {
  for (int i = 0; i < KEYS / 2; i++) CHECK_EQ(pthread_key_create(&keys[i], destructor), 0);
  allocator_free(allocator_malloc(1));
  for (int i = KEYS / 2; i < KEYS; i++) CHECK_EQ(pthread_key_create(&keys[i], destructor), 0);
  destructors_test();
  orphans_test();
  after_the_end_test();
  unusual_ends_test();
  return 0;
}
