// fork_storm: threads allocate without pause while others fork. Each child allocates, frees what it
// inherited, starts a thread of its own, forks again, and ends; a child that hangs has inherited a
// lock that nobody will release.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "forks.h"

enum {
  WORKERS = 4,
  FORKERS = 2,
  FORKS = 40,
  INHERITED = 300,
  CHILD_SECONDS = 20,
  SIZE_LOG2 = 17,
};

// Blocks of the workers that nobody touches while the storm lasts: each child frees its copies.
static struct shadow inherited[WORKERS][INHERITED];
static pthread_barrier_t prepared;
static pthread_barrier_t forkers;
static atomic_bool stopped;

static void *worker_run(void *data) {
  struct random random = {(uintptr_t)data + 1};
  struct shadow *mine = inherited[(uintptr_t)data];
  for (int i = 0; i < INHERITED; i++) {
    size_t size = random_size(&random, SIZE_LOG2);
    CHECK(shadow_take(&mine[i], allocator_malloc(size), size, random_next(&random)));
  }
  pthread_barrier_wait(&prepared);
  while (!atomic_load(&stopped)) churn(&random, 200);
  return NULL;
}

static void *child_thread_run(void *data) {
  struct random random = {(uintptr_t)data};
  churn(&random, 500);
  return NULL;
}

static void child_thread(uintptr_t seed) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, child_thread_run, (void *)seed), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void inherited_free(void) {
  for (int worker = 0; worker < WORKERS; worker++)
    for (int i = 0; i < INHERITED; i++) shadow_drop(&inherited[worker][i]);
}

static void child_work(uintptr_t seed) {
  struct random random = {seed};
  alarm(CHILD_SECONDS);
  churn(&random, 300);
  inherited_free();
  child_thread(seed);
  churn(&random, 300);
  allocator_trim(0);
}

static void child_live(uintptr_t seed) {
  child_work(seed);
  if (seed % 8 == 0) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      child_work(seed + 1);
      _exit(0);
    }
    child_expect(grandchild, "a grandchild");
  }
  if (seed % 4 == 0) exit(0);
  _exit(0);
}

static void forks_make(uintptr_t seed) {
  struct random random = {seed + 1000};
  for (int i = 0; i < FORKS; i++) {
    churn(&random, 20);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) child_live((uintptr_t)i);
    child_expect(child, "a child");
  }
}

// AddressSanitizer allocates for threads that begin and end, under locks that its fork does not
// take: a child that inherits one held waits for ever. So none forks before all have begun, and
// none ends before all have forked.
static void *forker_run(void *data) {
  pthread_barrier_wait(&forkers);
  forks_make((uintptr_t)data);
  pthread_barrier_wait(&forkers);
  return NULL;
}

// Handlers of the program run between ours and the fork: they may allocate too.
static _Thread_local void *handler_block;

static void before_fork(void) { handler_block = allocator_malloc(100); }
static void after_fork(void) { allocator_free(handler_block); }

int main(void) {
  pthread_t workers[WORKERS], forking[FORKERS];
  CHECK_EQ(pthread_barrier_init(&prepared, NULL, WORKERS + 1), 0);
  CHECK_EQ(pthread_barrier_init(&forkers, NULL, FORKERS), 0);
  for (uintptr_t i = 0; i < WORKERS; i++)
    CHECK_EQ(pthread_create(&workers[i], NULL, worker_run, (void *)i), 0);
  pthread_barrier_wait(&prepared);
  forks_make(99);
  CHECK_EQ(pthread_atfork(before_fork, after_fork, after_fork), 0);
  forks_make(98);
  for (uintptr_t i = 0; i < FORKERS; i++)
    CHECK_EQ(pthread_create(&forking[i], NULL, forker_run, (void *)i), 0);
  for (int i = 0; i < FORKERS; i++) CHECK_EQ(pthread_join(forking[i], NULL), 0);
  atomic_store(&stopped, true);
  for (int i = 0; i < WORKERS; i++) CHECK_EQ(pthread_join(workers[i], NULL), 0);
  inherited_free();
  return 0;
}
