// early_late: allocation before any constructor, in constructors, in exit handlers, in destructors,
// and by threads that still run while the process ends.
#include <pthread.h>
#include <sys/wait.h>

#include "shadow.h"

enum { EARLY = 200, RUNNERS = 4, EXITS = 30 };

static struct shadow early[EARLY];
static int constructed, exits_seen;

static void blocks_take(struct shadow *blocks, int count, uint64_t seed) {
  struct random random = {seed};
  for (int i = 0; i < count; i++) {
    size_t size = random_size(&random, 18);
    CHECK(shadow_take(&blocks[i], allocator_malloc(size), size, random_next(&random)));
    if (i % 5 == 0) CHECK(shadow_resize(&blocks[i], size / 2 + 100));
  }
}

static void blocks_drop(struct shadow *blocks, int count) {
  for (int i = 0; i < count; i++) shadow_drop(&blocks[i]);
}

static void preinit(void) {
  blocks_take(early, EARLY, 1);
  allocator_free(allocator_calloc(100, 100));
  allocator_free(allocator_aligned_alloc(4096, 100));
  blocks_drop(early, EARLY / 2);
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(void) = preinit;

__attribute__((constructor(101))) static void construct(void) {
  blocks_take(early, EARLY / 2, 2);
  constructed = 1;
}

static void on_exit_first(void) {
  struct shadow late[EARLY];
  exits_seen++;
  blocks_take(late, EARLY, 3);
  blocks_drop(late, EARLY);
  blocks_drop(early, EARLY / 4);
}

// The last code of the program: everything else has been torn down.
__attribute__((destructor(101))) static void destruct(void) {
  CHECK_EQ(exits_seen, 2);
  blocks_drop(early, EARLY);
  struct shadow late[EARLY];
  blocks_take(late, EARLY, 4);
  blocks_drop(late, EARLY);
}

static void *runner_run(void *data) {
  struct random random = {(uintptr_t)data};
  for (;;) {
    size_t size = random_size(&random, 18);
    struct shadow block;
    CHECK(shadow_take(&block, allocator_malloc(size), size, random_next(&random)));
    shadow_drop(&block);
  }
  return NULL;
}

static void runners_start(void) {
  pthread_t thread;
  for (uintptr_t i = 0; i < RUNNERS; i++) {
    CHECK_EQ(pthread_create(&thread, NULL, runner_run, (void *)i), 0);
    CHECK_EQ(pthread_detach(thread), 0);
  }
}

// Children that exit while their threads are busy, at a different moment each.
static void busy_exits_test(void) {
  for (int i = 0; i < EXITS; i++) {
    int status;
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
      alarm(20);
      runners_start();
      usleep((useconds_t)i * 300);
      if (i % 3 == 0) quick_exit(0);
      exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "exit %d: status 0x%x", i,
               (unsigned)status);
  }
}

int main(void) {
  CHECK(constructed);
  CHECK_EQ(atexit(on_exit_first), 0);
  CHECK_EQ(atexit(on_exit_first), 0);
  busy_exits_test();
  runners_start();
  return 0;
}
