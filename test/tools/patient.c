// patient SITUATION: a program whose memory is as a doctor may find it (patients.h):
//   large      200 MiB in blocks of 1 MiB
//   threads    32 threads that have freed 4 MiB each, and sleep
//   pipeline   a thread frees what another one allocates, in a program with epochs
//   open       jobs whose epochs nobody closes
//   tenant     an epoch at its hard limit
//   uploads    requests that leave an object behind, each
//   trickle    the same of one request a second
//   sessions   requests that leave a session behind, which ends when 200 others have come
//   greedy     takes blocks of 16 MiB until it was refused three times
//   inside     threads that stay in the scopes of requests that were closed
//   leaking    20 MiB a second that nobody frees, outside of epochs
//   cache      100 MiB outside of epochs, of which 20 MiB a second are new and as many end
//   locked     200 MiB that are locked in memory, and free
//   users      a label for each user
//   tenants    tenants within their limits, whose workers stay in their epochs and free what the
//              main thread sends them
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <tslab.h>
#include <unistd.h>

#include "patients.h"

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
  REQUESTS_A_SECOND = 1000000 / REQUEST_US,
  GREEDY_BYTES = 16 << 20,
  WORKERS = 4,
  STEP_US = 10000,
  STEP_BLOCKS = 100,
  CACHED_BLOCKS = 50000,
  USERS = 5000,
  TENANT_USES_BYTES = 16 << 20,
  ANSWER_BLOCKS = 100,
  LETTER_US = 1000
};

static void *ring[RING];
static atomic_uint written, taken;

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
  for (int i = 0; i < THREADS; i++) thread_start(sleeper_run, NULL);
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
  thread_start(producer_run, NULL);
  thread_start(consumer_run, NULL);
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

static void uploads_run(void) { thread_start(uploads_serve, NULL); }

static void trickle_run(void) { thread_start(trickle_serve, NULL); }

static void sessions_run(void) { thread_start(sessions_serve, NULL); }

static void greedy_run(void) {
  for (int refusals = 0; refusals < REFUSALS;) refusals += malloc(GREEDY_BYTES) == NULL;
}

static atomic_int inside;

static void *worker_stay(void *request) {
  tslab_scope here;
  if (tslab_scope_enter(&here, *(tslab_epoch *)request) != 0) abort();
  for (int i = 0; i < JOB_BLOCKS; i++) filled(JOB_BYTES);
  atomic_fetch_add(&inside, 1);
  for (;;) pause();
  return request;
}

static void inside_run(void) {
  static tslab_epoch requests[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    requests[i] = tslab_epoch_open("GET /stream", NULL);
    thread_start(worker_stay, &requests[i]);
  }
  while (atomic_load(&inside) < WORKERS) usleep(1000);
  for (int i = 0; i < WORKERS; i++) tslab_epoch_close(requests[i]);
}

static void *leaking_serve(void *unused) {
  for (;; usleep(STEP_US)) {
    for (int i = 0; i < STEP_BLOCKS; i++) filled(LEFT_BYTES);
  }
  return unused;
}

static void leaking_run(void) { thread_start(leaking_serve, NULL); }

static void *cached[CACHED_BLOCKS];

static void *cache_serve(void *unused) {
  for (unsigned at = 0;; usleep(STEP_US)) {
    for (int i = 0; i < STEP_BLOCKS; i++, at = (at + 1) % CACHED_BLOCKS) {
      free(cached[at]);
      cached[at] = filled(LEFT_BYTES);
    }
  }
  return unused;
}

static void cache_run(void) {
  for (int i = 0; i < CACHED_BLOCKS; i++) cached[i] = filled(LEFT_BYTES);
  thread_start(cache_serve, NULL);
}

static void locked_run(void) {
  static void *blocks[LARGE_BLOCKS];
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) abort();
  for (int i = 0; i < LARGE_BLOCKS; i++) blocks[i] = filled(LARGE_BYTES);
  for (int i = 0; i < LARGE_BLOCKS; i++) free(blocks[i]);
}

static void users_run(void) {
  for (int i = 0; i < USERS; i++) {
    char label[32];
    snprintf(label, sizeof label, "user %d", i);
    tslab_epoch user = tslab_epoch_open(label, NULL);
    tslab_free(keep(user, JOB_BYTES));
    tslab_epoch_close(user);
  }
}

static _Atomic(void *) letters[WORKERS];

static void tenant_fill(tslab_epoch tenant) {
  for (int bytes = 0; bytes < TENANT_USES_BYTES; bytes += JOB_BYTES) keep(tenant, JOB_BYTES);
}

// What a tenant's worker does on its own for a letter.
static void letter_answer(void *letter) {
  void *passing[ANSWER_BLOCKS];
  for (int i = 0; i < ANSWER_BLOCKS; i++) passing[i] = filled(JOB_BYTES);
  for (int i = 0; i < ANSWER_BLOCKS; i++) free(passing[i]);
  free(letter);
}

static void *tenant_serve(void *box) {
  tslab_epoch_options options = {.size = sizeof options, .hard_limit_bytes = TENANT_BYTES};
  tslab_epoch tenant = tslab_epoch_open("tenant", &options);
  tslab_scope here;
  if (tslab_scope_enter(&here, tenant) != 0) abort();
  tenant_fill(tenant);
  for (;; usleep(LETTER_US)) {
    void *letter = atomic_exchange((_Atomic(void *) *)box, NULL);
    if (letter != NULL) letter_answer(letter);
  }
  return box;
}

static void *letters_send(void *unused) {
  for (;; usleep(LETTER_US)) {
    for (int i = 0; i < WORKERS; i++) {
      if (atomic_load(&letters[i]) == NULL) atomic_store(&letters[i], filled(LEFT_BYTES));
    }
  }
  return unused;
}

static void tenants_run(void) {
  for (int i = 0; i < WORKERS; i++) thread_start(tenant_serve, &letters[i]);
  thread_start(letters_send, NULL);
}

static const struct situation situations[] = {
    {"large", large_run},       {"threads", threads_run},
    {"pipeline", pipeline_run}, {"open", open_run},
    {"tenant", tenant_run},     {"uploads", uploads_run},
    {"trickle", trickle_run},   {"sessions", sessions_run},
    {"greedy", greedy_run},     {"inside", inside_run},
    {"leaking", leaking_run},   {"cache", cache_run},
    {"locked", locked_run},     {"users", users_run},
    {"tenants", tenants_run},   {NULL, NULL}};

int main(int count, char **arguments) { return situation_main(count, arguments, situations); }
