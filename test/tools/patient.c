// patient SITUATION: a program whose memory is as a doctor may find it. It says "ready" when it is,
// goes on with what it does, and ends with its input:
//   large      200 MiB in blocks of 1 MiB
//   threads    32 threads that have freed 4 MiB each, and sleep
//   pipeline   a thread frees what another one allocates, in a program with epochs
//   open       jobs whose epochs nobody closes
//   tenant     an epoch at its hard limit
//   uploads    requests that leave an object behind, each
//   trickle    the same of one request a second
//   sessions   requests that leave a session behind, which ends when 200 others have come
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>
#include <unistd.h>

enum {
  LARGE_BLOCKS = 200,
  LARGE_BYTES = 1 << 20,
  THREADS = 32,
  THREAD_BLOCKS = 8192,
  THREAD_BYTES = 512,
  RING = 4096,
  JOBS = 200,
  JOB_BLOCKS = 500,
  JOB_BYTES = 1000,
  TENANT_BYTES = 32 << 20,
  REFUSALS = 3,
  REQUEST_BLOCKS = 20,
  LEFT_BYTES = 2000,
  SESSIONS = 200,
  REQUEST_US = 2500,
  REQUESTS_A_SECOND = 1000000 / REQUEST_US
};

static void *ring[RING];
static atomic_uint written, taken;

static void *filled(size_t bytes) {
  void *block = malloc(bytes);
  if (block == NULL) abort();
  return memset(block, 1, bytes);
}

static void thread_start(void *(*run)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) != 0) abort();
}

static void large_run(void) {
  for (int i = 0; i < LARGE_BLOCKS; i++) filled(LARGE_BYTES);
}

static atomic_int asleep;

static void *sleeper_run(void *unused) {
  void **blocks = filled(THREAD_BLOCKS * sizeof *blocks);
  for (int i = 0; i < THREAD_BLOCKS; i++) blocks[i] = filled(THREAD_BYTES);
  for (int i = 0; i < THREAD_BLOCKS; i++) free(blocks[i]);
  free(blocks);
  atomic_fetch_add(&asleep, 1);
  for (;;) pause();
  return unused;
}

static void threads_run(void) {
  for (int i = 0; i < THREADS; i++) thread_start(sleeper_run);
  while (atomic_load(&asleep) < THREADS) usleep(1000);
}

static void *producer_run(void *unused) {
  for (;;) {
    unsigned at = atomic_load(&written);
    if (at - atomic_load(&taken) == RING) continue;
    ring[at % RING] = malloc(64);
    atomic_store(&written, at + 1);
  }
  return unused;
}

static void *consumer_run(void *unused) {
  for (;;) {
    unsigned at = atomic_load(&taken);
    if (at == atomic_load(&written)) continue;
    free(ring[at % RING]);
    atomic_store(&taken, at + 1);
  }
  return unused;
}

static void *keep(tslab_epoch epoch, size_t bytes) {
  void *block = tslab_epoch_malloc(epoch, bytes);
  return block == NULL ? NULL : memset(block, 1, bytes);
}

static void pipeline_run(void) {
  tslab_epoch start = tslab_epoch_open("start", NULL);
  tslab_free(keep(start, JOB_BYTES));
  tslab_epoch_close(start);
  thread_start(producer_run);
  thread_start(consumer_run);
}

static void open_run(void) {
  for (int i = 0; i < JOBS; i++) {
    tslab_epoch job = tslab_epoch_open("job", NULL);
    for (int n = 0; n < JOB_BLOCKS; n++) keep(job, JOB_BYTES);
  }
}

static void tenant_run(void) {
  tslab_epoch_options options = {.size = sizeof options, .hard_limit_bytes = TENANT_BYTES};
  tslab_epoch tenant = tslab_epoch_open("tenant", &options);
  for (int refusals = 0; refusals < REFUSALS;) refusals += keep(tenant, JOB_BYTES) == NULL;
}

// What a request leaves behind; NULL: nothing, or it was not asked to.
static void *request_serve(const char *label, bool leaves) {
  void *left = NULL;
  tslab_epoch request = tslab_epoch_open(label, NULL);
  tslab_scope here;
  if (tslab_scope_enter(&here, request) == 0) {
    void *passing[REQUEST_BLOCKS];
    for (int i = 0; i < REQUEST_BLOCKS; i++) passing[i] = filled(LEFT_BYTES);
    if (leaves) left = filled(LEFT_BYTES);
    for (int i = 0; i < REQUEST_BLOCKS; i++) free(passing[i]);
    tslab_scope_leave(&here);
  }
  tslab_epoch_close(request);
  usleep(REQUEST_US);
  return left;
}

static void *uploads_serve(void *unused) {
  for (;;) request_serve("GET /upload", true);
  return unused;
}

static void *trickle_serve(void *unused) {
  for (unsigned i = 0;; i++) request_serve("GET /page", i % REQUESTS_A_SECOND == 0);
  return unused;
}

static void *sessions_serve(void *unused) {
  static void *sessions[SESSIONS];
  for (unsigned i = 0;; i++) {
    free(sessions[i % SESSIONS]);
    sessions[i % SESSIONS] = request_serve("POST /login", true);
  }
  return unused;
}

static void uploads_run(void) { thread_start(uploads_serve); }

static void trickle_run(void) { thread_start(trickle_serve); }

static void sessions_run(void) { thread_start(sessions_serve); }

static const struct {
  const char *name;
  void (*run)(void);
} situations[] = {{"large", large_run},     {"threads", threads_run},  {"pipeline", pipeline_run},
                  {"open", open_run},       {"tenant", tenant_run},    {"uploads", uploads_run},
                  {"trickle", trickle_run}, {"sessions", sessions_run}};

static bool run(const char *name) {
  for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
    if (strcmp(situations[i].name, name) != 0) continue;
    situations[i].run();
    return true;
  }
  return false;
}

int main(int count, char **arguments) {
  if (count != 2 || !run(arguments[1])) return 2;
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) continue;
  return 0;
}
