// The helper among the system's threads. The calls of libc here allocate from libc's own heap.
#include "alloc/helper.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "alloc/malloc.h"
#include "base/options.h"
#include "capture.h"
#include "memory/mirror.h"
#include "memory/purge.h"
#include "memory/segment.h"
#include "tasks.h"
#include "threads.h"

enum { MIB = 1 << 20, PATIENCE_MS = 10000 };

// A sanitizer has threads and addresses of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

// A thread's variables, which glibc takes from the thread's stack: more than the helper's has.
static __thread char large[MIB];

// How many threads were made, by the library or here. A helper that was made may have ended before
// anybody counts those that are there.
static uint32_t made;

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
  int error = __real_pthread_create(thread, attributes, run, argument);
  if (error == 0) tsl_add_relaxed(&made, 1);
  return error;
}

static uint32_t threads_made(void) { return tsl_load_relaxed(&made); }

static void make_idle(size_t bytes) {
  void *block = tsl_fast_malloc(bytes);
  CHECK(block != NULL);
  tsl_fast_free(block);
}

static void begin(void) {
  large[MIB - 1] = 1;
  tsl_options.purge_delay_ms = 10;
  tsl_options.detain_ms = 0;  // what is freed is idle at once
}

static bool tasks_become(unsigned count) {
  for (int ms = 0; tasks_count() != count && ms < PATIENCE_MS; ms++) usleep(1000);
  return tasks_count() == count;
}

static bool all_goes_back(void) {
  for (int ms = 0; tsl_purge_idle_bytes() != 0 && ms < PATIENCE_MS; ms++) usleep(1000);
  return tsl_purge_idle_bytes() == 0;
}

// CLONE_VM: what CLONE_NEWUSER and setns ask for, too, but without the right to do more.
static bool may_unshare(void) { return unshare(CLONE_VM) == 0; }

static void one_thread_with_less_has_none(void) {
  begin();
  make_idle(24 * MIB);
  (void)tsl_fast_malloc(100);
  usleep(50000);
  CHECK_EQ(threads_made(), 0);
  CHECK(may_unshare());
  CHECK_GE(tsl_purge_idle_bytes(), 20 * MIB);
}

// The free is the program's last call: what it left goes back in silence.
static void one_thread_with_more_gets_one(void) {
  begin();
  make_idle(40 * MIB);
  CHECK_EQ(threads_made(), 1);
  CHECK(all_goes_back());
  CHECK(tasks_become(1));
  CHECK(may_unshare());
}

static void born_again_on_need(void) {
  begin();
  for (uint32_t lives = 1; lives <= 3; lives++) {
    make_idle(40 * MIB);
    CHECK_EQ(threads_made(), lives);
    CHECK(all_goes_back());
    CHECK(tasks_become(1));
  }
}

static int enter_own_mounts(void) {
  int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  CHECK_GE(mounts, 0);
  int error = setns(mounts, CLONE_NEWNS) == 0 ? 0 : errno;
  close(mounts);
  return error;
}

// Who may enter namespaces at all may do so once the helper has ended.
static void namespaces_are_refused_beside_it(void) {
  begin();
  bool may_enter = enter_own_mounts() == 0;
  tsl_options.helper = TSL_HELPER_ALWAYS;
  (void)tsl_fast_malloc(100);
  for (int ms = 0; !tsl_purge_has_helper() && ms < PATIENCE_MS; ms++) usleep(1000);
  CHECK(unshare(CLONE_NEWUSER) != 0 && errno == EINVAL);
  if (may_enter) CHECK_EQ(enter_own_mounts(), EINVAL);
  tsl_store_relaxed(&tsl_options.helper, TSL_HELPER_NEVER);
  CHECK(tasks_become(1));
  if (may_enter) CHECK_EQ(enter_own_mounts(), 0);
  CHECK(unshare(CLONE_NEWUSER) == 0 || errno != EINVAL);
}

static void small_blocks_freed_last_are_noticed(void) {
  enum { BLOCKS = 96 * MIB / 1024 };
  void **blocks = malloc(BLOCKS * sizeof *blocks);
  begin();
  for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = tsl_fast_malloc(1000);
  CHECK_EQ(threads_made(), 0);
  for (unsigned i = 0; i < BLOCKS; i++) tsl_fast_free(blocks[i]);
  CHECK_GE(threads_made(), 1);
  CHECK(all_goes_back());
}

static void an_epoch_that_ends_is_noticed(void) {
  begin();
  tslab_epoch epoch = tslab_epoch_open("large", NULL);
  for (int i = 0; i < 2; i++) CHECK(tslab_epoch_malloc(epoch, 20 * MIB) != NULL);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK_EQ(threads_made(), 1);
  CHECK(all_goes_back());
}

static void never_means_none(void) {
  begin();
  tsl_options.helper = TSL_HELPER_NEVER;
  make_idle(100 * MIB);
  (void)tsl_fast_malloc(100);
  CHECK_EQ(threads_made(), 0);
}

static uint32_t over;  // [remote]

static void *wait_for_the_end(void *unused) {
  while (tsl_load_relaxed(&over) == 0) usleep(1000);
  return unused;
}

static void two_threads_need_less(void) {
  pthread_t thread;
  begin();
  CHECK_EQ(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
  make_idle(4 * MIB);
  CHECK_EQ(threads_made(), 1);
  make_idle(12 * MIB);
  CHECK_EQ(threads_made(), 2);
  CHECK(all_goes_back());
  tsl_store_relaxed(&over, 1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

// What cannot be blocked, and what the helper's own instructions raise.
static uint64_t signals_of_its_own(void) {
  static const int numbers[] = {SIGKILL, SIGSTOP, SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  uint64_t signals = 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    signals |= UINT64_C(1) << (numbers[i] - 1);
  return signals;
}

// One block in each slab lives on, and the thread goes silent.
static void be_silent_with_sparse_slabs(void) {
  enum { BYTES = 512, EVERY = 128, BLOCKS = 64 * MIB / BYTES };
  char **blocks = malloc(BLOCKS * sizeof *blocks);
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = tsl_fast_malloc(BYTES);
    memset(blocks[i], 0x5a, BYTES);
  }
  for (unsigned i = 0; i < BLOCKS; i++)
    if (i % EVERY != 0) tsl_fast_free(blocks[i]);
  CHECK_GE(threads_made(), 1);
  uint64_t wanted = 48 * MIB;
  for (int ms = 0; tsl_load_relaxed(&tsl_counts.purged_bytes) < wanted && ms < PATIENCE_MS; ms++)
    usleep(1000);
  CHECK_GE(tsl_load_relaxed(&tsl_counts.purged_bytes), wanted);
  for (unsigned i = 0; i < BLOCKS; i += EVERY)
    for (unsigned b = 0; b < BYTES; b++) CHECK_EQ(blocks[i][b], 0x5a);
}

static void sparse_slabs_of_a_silent_thread_give_pages_back(void) {
  begin();
  be_silent_with_sparse_slabs();
}

// The survivors are of epochs that share their memory.
static void so_do_those_of_a_shared_epoch(void) {
  const tslab_epoch_options shared = {.size = sizeof shared, .place = TSLAB_PLACE_SHARED};
  tslab_scope scope;
  begin();
  CHECK_EQ(tslab_scope_enter(&scope, tslab_epoch_open("request", &shared)), 0);
  tsl_heap_current->cell_class = false;
  be_silent_with_sparse_slabs();
}

static bool has_purged(void) { return tsl_load_relaxed(&tsl_counts.purges) > 10; }

// Threads fill and empty their slabs while the helper tends them, whenever the system lets it run:
// no block loses a byte.
static void *fill_and_empty(void *number) {
  enum { BLOCKS = 2000, ROUNDS = 60, MOST_ROUNDS = 3000 };
  uint64_t seed = (uintptr_t)number;
  unsigned char *mine[BLOCKS] = {NULL};
  for (unsigned round = 0; round < ROUNDS || (!has_purged() && round < MOST_ROUNDS); round++) {
    unsigned keep = round % 2 == 0 ? 1 : 50;
    for (unsigned i = 0; i < BLOCKS; i++) {
      if (mine[i] == NULL) memset(mine[i] = tsl_fast_malloc(400), (int)(i & 255), 400);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
      for (unsigned b = 0; b < 400; b += 133) CHECK_EQ(mine[i][b], (i & 255));
      if (test_random_below(&seed, 50) < keep) continue;
      tsl_fast_free(mine[i]);
      mine[i] = NULL;
    }
    usleep(test_random_below(&seed, 5) * 1000);
  }
  for (unsigned i = 0; i < BLOCKS; i++) tsl_fast_free(mine[i]);
  return NULL;
}

static void busy_threads_are_tended(void) {
  pthread_t threads[THREADS];
  begin();
  tsl_options.helper = TSL_HELPER_ALWAYS;
  tsl_options.purge_delay_ms = 1;
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, fill_and_empty, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  CHECK(has_purged());
}

static void has_a_name_no_signals_and_no_heap(void) {
  // But for the three that C libraries keep for themselves.
  const uint64_t all = UINT64_C(0xfffffffc7fffffff);
  char line[200];
  begin();
  tsl_options.helper = TSL_HELPER_ALWAYS;
  (void)tsl_fast_malloc(100);
  for (int ms = 0; !tsl_purge_has_helper() && ms < PATIENCE_MS; ms++) usleep(1000);
  CHECK_EQ(tasks_count(), 2);
  CHECK(!may_unshare());
  tasks_other_line("Name:", line, sizeof line);
  CHECK_THAT(strcmp(line, "Name:\ttslab-helper\n") == 0, "%s", line);
  tasks_other_line("SigBlk:", line, sizeof line);
  uint64_t blocked = strtoull(line + strlen("SigBlk:"), NULL, 16);
  CHECK_EQ(blocked & all, all & ~signals_of_its_own());
  CHECK_EQ(tsl_region.last_heap, 1);
}

// The C library asks each thread to change its own rights, and waits for it.
static void follows_a_change_of_rights(void) {
  enum { NOBODY = 65534 };
  char line[200];
  begin();
  tsl_options.helper = TSL_HELPER_ALWAYS;
  make_idle(4 * MIB);
  for (int ms = 0; !tsl_purge_has_helper() && ms < PATIENCE_MS; ms++) usleep(1000);
  uid_t before = geteuid(), user = before == 0 ? NOBODY : before;  // only root has others
  alarm(20);
  CHECK_EQ(tasks_count(), 2);
  tasks_other_line("Uid:", line, sizeof line);
  CHECK_EQ(strtoul(line + strlen("Uid:"), NULL, 10), before);
  CHECK_EQ(setuid(user), 0);
  tasks_other_line("Uid:", line, sizeof line);
  CHECK_EQ(strtoul(line + strlen("Uid:"), NULL, 10), user);
  make_idle(4 * MIB);
  CHECK(all_goes_back());
}

static void in_child(void (*function)(void)) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    function();
    _exit(EXIT_SUCCESS);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

static void born_again(void) {
  CHECK_EQ(tasks_count(), 1);
  CHECK(!tsl_purge_has_helper());
  tsl_store_relaxed(&made, 0);
  make_idle(200 * MIB);
  CHECK_EQ(threads_made(), 1);
  CHECK(all_goes_back());
}

static void gone_in_a_child_and_born_again_on_need(void) {
  begin();
  make_idle(200 * MIB);  // a child may come in the middle of a step
  CHECK_EQ(threads_made(), 1);
  for (int i = 0; i < 8; i++) in_child(born_again);
  CHECK(all_goes_back());
}

// The child of a vfork is a process that has the parent's memory for a while: a thread of its own
// would be gone with it.
static void the_child_of_a_vfork_starts_none(void) {
  int status;
  begin();
  (void)tsl_fast_malloc(100);
  pid_t child = vfork();
  if (child == 0) {
    tsl_fast_free(tsl_fast_malloc(40 * MIB));
    _exit(EXIT_SUCCESS);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(threads_made(), 0);
  make_idle(40 * MIB);
  CHECK_EQ(threads_made(), 1);
  CHECK(all_goes_back());
}

static void free_while_refused(void) {
  struct rlimit limit = {MIB, MIB};
  tsl_options.verbose = 1;
  void *block = tsl_fast_malloc(40 * MIB), *other = tsl_fast_malloc(40 * MIB);
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  tsl_fast_free(block);
  tsl_fast_free(other);
  CHECK(!tsl_purge_has_helper());
}

static void says_once_that_it_is_refused(void) {
  begin();
  CHECK_EQ(capture_child(free_while_refused), 0);
  CHECK_EQ(capture_lines(capture_text), 1);
  CHECK_THAT(strstr(capture_text, "refuses a thread") != NULL, "%s", capture_text);
}

int main(void) {
  RUN(busy_threads_are_tended);
  if (IS_SANITIZED) return test_status();
  RUN(one_thread_with_less_has_none);
  RUN(never_means_none);
  RUN(one_thread_with_more_gets_one);
  RUN(born_again_on_need);
  RUN(namespaces_are_refused_beside_it);
  RUN(small_blocks_freed_last_are_noticed);
  RUN(an_epoch_that_ends_is_noticed);
  RUN_UNLESS_SECURE(sparse_slabs_of_a_silent_thread_give_pages_back);
  RUN_UNLESS_SECURE(so_do_those_of_a_shared_epoch);
  RUN(two_threads_need_less);
  RUN(has_a_name_no_signals_and_no_heap);
  RUN(follows_a_change_of_rights);
  RUN(gone_in_a_child_and_born_again_on_need);
  RUN(the_child_of_a_vfork_starts_none);
  RUN(says_once_that_it_is_refused);
  return test_status();
}
