// epoch_fork: a program forks while its threads open, use and close epochs. The child keeps the
// epochs that were at rest: it finds every object, goes on in them, closes them, and they drain.
// Those that were in the hands of a thread that it does not have it can still release. The parent
// notices nothing.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tslab.h>

#include "forks.h"
#include "stale.h"

enum { WORKERS = 4, KEPT = 60, LIVE = 40, CHILD_SECONDS = 20, SIZE_LOG2 = 14 };

// A fork of a sanitizer's shadow memory takes its time.
#if defined(__SANITIZE_ADDRESS__)
#define FORKS 20
#else
#define FORKS 60
#endif

// Each worker's share of the epoch that all of them have objects in, and of one of its own. Nobody
// touches them while forks go on.
static struct kept {
  tslab_epoch own;
  struct shadow mine[KEPT], shared[KEPT];
} kept[WORKERS];
static tslab_epoch shared;
static pthread_barrier_t prepared;
static atomic_bool stopped;
static atomic_ulong epochs_done;

static tslab_epoch epoch_open(struct random *random) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_OWN};
  if (random_below(random, 4) == 0) options.first_cell_bytes = TSLAB_NO_CELLS;
  tslab_epoch epoch = tslab_epoch_open("fork", &options);
  CHECK_THAT(epoch != TSLAB_NO_EPOCH, "errno %d", errno);
  return epoch;
}

static void block_make(struct shadow *block, struct random *random) {
  size_t size = random_size(random, random_below(random, 32) == 0 ? 18 : SIZE_LOG2);
  CHECK(shadow_take(block, allocator_malloc(size), size, random_next(random)));
}

static tslab_epoch epoch_open_sharing(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  tslab_epoch epoch = tslab_epoch_open("shared", &options);
  CHECK_THAT(epoch != TSLAB_NO_EPOCH, "errno %d", errno);
  return epoch;
}

// One epoch's life, in the middle of which another thread may fork.
static void epoch_live(struct random *random) {
  struct shadow live[LIVE] = {{NULL, 0, 0}};
  bool shares = random_below(random, 4) == 0;
  tslab_epoch epoch = shares ? epoch_open_sharing() : epoch_open(random);
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  for (size_t rounds = random_below(random, 200); rounds != 0; rounds--) {
    struct shadow *block = &live[random_below(random, LIVE)];
    shadow_drop(block);
    block_make(block, random);
    if (rounds % 16 == 0 && !shares) CHECK_EQ(tslab_epoch_of(block->block), epoch);
  }
  bool release = (random_next(random) & 1) && !shares;
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  if (release) CHECK_EQ(tslab_epoch_release(epoch), 0);
  if (!release) CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  for (int i = 0; i < LIVE && !release; i++) shadow_drop(&live[i]);
  stale_check(epoch);
  atomic_fetch_add_explicit(&epochs_done, 1, memory_order_relaxed);
}

static void kept_fill(struct shadow *blocks, tslab_epoch epoch, struct random *random) {
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  for (int i = 0; i < KEPT; i++) block_make(&blocks[i], random);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
}

static void *worker_run(void *data) {
  struct kept *mine = data;
  struct random random = {(uintptr_t)(mine - kept) + 1};
  mine->own = epoch_open(&random);
  kept_fill(mine->mine, mine->own, &random);
  kept_fill(mine->shared, shared, &random);
  pthread_barrier_wait(&prepared);
  while (!atomic_load(&stopped)) epoch_live(&random);
  return NULL;
}

static void kept_check(tslab_epoch epoch, struct shadow *blocks) {
  for (int i = 0; i < KEPT; i++) {
    shadow_check(&blocks[i]);
    CHECK_EQ(tslab_epoch_of(blocks[i].block), epoch);
  }
}

// Goes on in an epoch that was inherited, then ends it, half by closing and half by freeing first.
static void kept_end(tslab_epoch epoch, struct shadow **shares, int count, struct random *random) {
  struct shadow more[LIVE] = {{NULL, 0, 0}};
  tslab_scope scope;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  for (int i = 0; i < LIVE; i++) block_make(&more[i], random);
  for (int share = 0; share < count; share++)
    for (int i = 0; i < KEPT / 2; i++) shadow_drop(&shares[share][i]);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
  CHECK_EQ(stats.live_objects, count * KEPT / 2 + LIVE);
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, 0);
  CHECK_EQ(left.objects, count * KEPT / 2 + LIVE);
  for (int share = 0; share < count; share++)
    for (int i = KEPT / 2; i < KEPT; i++) shadow_drop(&shares[share][i]);
  for (int i = 0; i < LIVE; i++) shadow_drop(&more[i]);
  stale_check(epoch);
}

static void all_kept_end(struct random *random) {
  struct shadow *shares[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    kept_check(kept[i].own, kept[i].mine);
    kept_check(shared, kept[i].shared);
    shares[i] = kept[i].shared;
  }
  kept_end(shared, shares, WORKERS, random);
  for (int i = 0; i < WORKERS; i++) {
    shares[0] = kept[i].mine;
    kept_end(kept[i].own, shares, 1, random);
  }
}

// Whether an epoch whose threads are gone may answer so. One of them may be inside for ever where
// the epoch was closed, and may have been on its way to end it where it was released. One that had
// taken the last hold off a closed epoch leaves its record, of which nothing lives.
static bool orphan_may_answer(const tslab_epoch_stats *stats, int error) {
  if (stats->place != stats->epoch && error == ENOTSUP) return true;
  if (stats->state == TSLAB_OPEN) return error == 0;
  if (stats->state == TSLAB_CLOSED && error != ESTALE) return error == 0 || error == EBUSY;
  if (stats->state == TSLAB_CLOSED) return stats->live_objects == 0;
  return error == EBUSY || error == ESTALE;
}

// It may keep what they were changing, but can be used while it is open, and ends.
static int orphan_end(tslab_epoch epoch, void *context) {
  struct random *random = context;
  tslab_epoch_stats stats = {.size = sizeof stats};
  int asked = tslab_epoch_get_stats(epoch, &stats);
  if (asked == ESTALE) return 0;  // the helper has found it empty since
  CHECK_EQ(asked, 0);
  if (stats.state == TSLAB_SHARED) return 0;
  bool is_open = stats.state == TSLAB_OPEN;
  if (is_open && random_next(random) & 1) {
    void *block = tslab_epoch_malloc(epoch, 100);
    CHECK(block != NULL);
    memset(block, 1, 100);
  }
  bool closes = is_open && random_next(random) & 1;
  int error = closes ? tslab_epoch_close(epoch).error : tslab_epoch_release(epoch);
  CHECK_THAT(orphan_may_answer(&stats, error), "state %d, error %d, %zu live", (int)stats.state,
             error, stats.live_objects);
  if (error == 0 && !closes) CHECK_EQ(tslab_epoch_release(epoch), ESTALE);
  return 0;
}

static void *child_thread_run(void *data) {
  struct random random = {(uintptr_t)data};
  for (int i = 0; i < 30; i++) epoch_live(&random);
  return NULL;
}

// `mine`: an epoch in which the thread that forked is, and goes on in the child.
static void child_live(uintptr_t seed, tslab_epoch mine, tslab_scope *scope) {
  struct random random = {seed};
  struct shadow block;
  pthread_t thread;
  alarm(CHILD_SECONDS);
  block_make(&block, &random);
  CHECK_EQ(tslab_epoch_current(), mine);
  CHECK_EQ(tslab_epoch_of(block.block), mine);
  CHECK_EQ(tslab_scope_leave(scope), 0);
  CHECK_EQ(tslab_epoch_close(mine).objects, 2);
  shadow_drop(&block);
  all_kept_end(&random);
  child_thread_run((void *)seed);
  CHECK_EQ(pthread_create(&thread, NULL, child_thread_run, (void *)(seed + 1)), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  tslab_epochs_each(orphan_end, &random);
  for (int i = 0; i < 30; i++) epoch_live(&random);
  allocator_trim(0);
}

static void fork_once(uintptr_t seed) {
  struct random random = {seed};
  tslab_epoch epoch = epoch_open(&random);
  tslab_scope scope;
  struct shadow block;
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  block_make(&block, &random);
  pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) {
    child_live(seed, epoch, &scope);
    _exit(0);
  }
  child_expect(child, "a child");
  CHECK_EQ(tslab_epoch_current(), epoch);
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  shadow_drop(&block);
  stale_check(epoch);
}

static int epoch_see(tslab_epoch epoch, void *context) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  if (tslab_epoch_get_stats(epoch, &stats) == 0 && stats.state == TSLAB_SHARED) {
    CHECK_EQ(stats.live_objects, 0);
    return 0;
  }
  ++*(int *)context;
  stale_check(epoch);
  return 0;
}

int main(void) {
  pthread_t threads[WORKERS];
  struct random random = {7};
  int left = 0;
  shared = epoch_open(&random);
  CHECK_EQ(pthread_barrier_init(&prepared, NULL, WORKERS + 1), 0);
  for (int i = 0; i < WORKERS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, worker_run, &kept[i]), 0);
  pthread_barrier_wait(&prepared);
  for (uintptr_t i = 0; i < FORKS; i++) {
    check_context_set("fork %d", (int)i);
    fork_once(i + 1);
  }
  atomic_store(&stopped, true);
  for (int i = 0; i < WORKERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  all_kept_end(&random);
  tslab_epochs_each(epoch_see, &left);
  CHECK_EQ(left, 0);
  check_print("%lu epochs of the parent\n", atomic_load(&epochs_done));
  return 0;
}
