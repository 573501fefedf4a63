// How epochs end: survivors, releases, deferred calls, and threads that are inside meanwhile.
#include <semaphore.h>

#include "epochs.h"

// Cells, slabs and large blocks: each kind of memory has a survivor, and more of them.
static size_t survivors_make(tslab_epoch epoch, void **blocks, int count) {
  static const size_t sizes[] = {1, 40, 200, 1000, 5000, 20000, 100000, 64, 64, 64};
  size_t bytes = 0;
  for (int i = 0; i < count; i++) {
    size_t size = sizes[i % 10];
    blocks[i] = tslab_epoch_malloc(epoch, size);
    pattern_fill(blocks[i], size, (unsigned)i);
    bytes += malloc_usable_size(blocks[i]);
  }
  return bytes;
}

static void survivors_of(size_t first_cell_bytes) {
  enum { BLOCKS = 200 };
  tslab_epoch_options options = {.size = sizeof options, .first_cell_bytes = first_cell_bytes};
  tslab_epoch epoch = epoch_open(&options);
  void *blocks[BLOCKS], *dead[BLOCKS];
  size_t bytes = survivors_make(epoch, blocks, BLOCKS);
  survivors_make(epoch, dead, BLOCKS);
  free_all(dead, BLOCKS);
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, 0);
  CHECK_EQ(left.objects, BLOCKS);
  CHECK_GE(left.bytes, bytes);
  if (!TSL_SECURE) CHECK_EQ(left.bytes, bytes);
  CHECK_GE(left.pages * 4096, bytes);
  CHECK_LE(left.pages * 4096, epoch_stats(epoch).held_bytes);
  closed_check(epoch);
  for (int i = 0; i < BLOCKS; i++) {
    CHECK_EQ(epoch_stats(epoch).live_objects, BLOCKS - i);
    CHECK_GE(epoch_stats(epoch).live_bytes, bytes);
    if (!TSL_SECURE) CHECK_EQ(epoch_stats(epoch).live_bytes, bytes);
    bytes -= malloc_usable_size(blocks[i]);
    pattern_check(blocks[i], 1, (unsigned)i);
    thread_run(thread_free_run, blocks[i]);
  }
  stale_check(epoch);
}

static void survivors_test(void) {
  survivors_of(0);
  survivors_of(64 * KIB);
  survivors_of(TSLAB_NO_CELLS);
}

// Memory is held for as long as something lives there, and no longer.
static void drain_gives_back_test(void) {
  enum { BLOCKS = 1000 };
  static void *blocks[BLOCKS];
  tslab_epoch epoch = epoch_open(NULL);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = tslab_epoch_malloc(epoch, 5000);
  CHECK_EQ(tslab_epoch_close(epoch).objects, BLOCKS);
  size_t held = epoch_stats(epoch).held_bytes;
  for (int i = 0; i < BLOCKS - 1; i++) free(blocks[i]);
  CHECK_GE(held, BLOCKS * (size_t)5000);
  CHECK_LE(epoch_stats(epoch).held_bytes, 64 * KIB);
  free(blocks[BLOCKS - 1]);
  stale_check(epoch);
}

static void release_test(void) {
  enum { BLOCKS = 1000 };
  void *blocks[BLOCKS];
  for (int round = 0; round < 20; round++) {
    tslab_epoch parent = epoch_open(NULL), child = epoch_open_child(parent);
    tslab_epoch grandchild = epoch_open_child(child), closed = epoch_open_child(parent);
    survivors_make(parent, blocks, BLOCKS);
    survivors_make(child, blocks, BLOCKS);
    survivors_make(grandchild, blocks, BLOCKS);
    survivors_make(closed, blocks, BLOCKS);
    CHECK_EQ(tslab_epoch_close(closed).objects, BLOCKS);
    CHECK_EQ(tslab_epoch_release(parent), 0);
    stale_check(grandchild);
    stale_check(closed);
    stale_check(child);
    stale_check(parent);
  }
  tslab_epoch epoch = epoch_open(NULL);
  survivors_make(epoch, blocks, BLOCKS);
  CHECK_EQ(tslab_epoch_close(epoch).objects, BLOCKS);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  stale_check(epoch);
  CHECK_EQ(tslab_epoch_release(TSLAB_DEFAULT), EPERM);
  CHECK_EQ(tslab_epoch_close(TSLAB_DEFAULT).error, EPERM);
}

// A child that lives on keeps its parent's id, but nothing else of it.
static void child_keeps_parent_test(void) {
  tslab_epoch parent = epoch_open(NULL), child = epoch_open_child(parent);
  void *block = tslab_epoch_malloc(child, 100);
  CHECK_EQ(tslab_epoch_close(parent).objects, 0);
  closed_check(parent);
  CHECK_EQ(epoch_stats(child).state, TSLAB_OPEN);
  CHECK_EQ(epoch_stats(parent).children, 1);
  CHECK_EQ(epoch_stats(parent).held_bytes, epoch_stats(child).held_bytes);
  CHECK_EQ(tslab_epoch_close(child).objects, 1);
  free(block);
  stale_check(child);
  stale_check(parent);
}

static char deferred_order[8];
static int deferred_count;
static pthread_t deferred_thread;
static tslab_epoch deferred_epoch;
static char *deferred_object;

static void deferred_run(void *letter) {
  CHECK(pthread_equal(pthread_self(), deferred_thread));
  CHECK(strcmp(deferred_object, "alive") == 0);
  CHECK_REFUSED(tslab_epoch_malloc(deferred_epoch, 10), ECANCELED);
  void *block = malloc(100);
  CHECK_LANDS(TSLAB_DEFAULT, block);
  free(block);
  deferred_order[deferred_count++] = *(const char *)letter;
}

static void deferred_prepare(void) {
  deferred_epoch = epoch_open(NULL);
  deferred_object = tslab_epoch_malloc(deferred_epoch, 10);
  strcpy(deferred_object, "alive");
  deferred_thread = pthread_self();
  deferred_count = 0;
  memset(deferred_order, 0, sizeof deferred_order);
  for (const char *letter = "abc"; *letter != '\0'; letter++)
    CHECK_EQ(tslab_epoch_defer(deferred_epoch, deferred_run, (void *)letter), 0);
}

static void defer_test(void) {
  deferred_prepare();
  CHECK_EQ(tslab_epoch_close(deferred_epoch).objects, 1);
  CHECK(strcmp(deferred_order, "cba") == 0);
  closed_check(deferred_epoch);
  free(deferred_object);
  stale_check(deferred_epoch);
  deferred_prepare();
  CHECK_EQ(tslab_epoch_release(deferred_epoch), 0);
  CHECK(strcmp(deferred_order, "cba") == 0);
  stale_check(deferred_epoch);
  CHECK_EQ(tslab_epoch_defer(TSLAB_DEFAULT, deferred_run, NULL), EPERM);
}

// A cleanup may free the epoch's last object: the epoch is over when closing returns.
static void defer_frees_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  for (int i = 0; i < 100; i++)
    CHECK_EQ(tslab_epoch_defer(epoch, free, tslab_epoch_malloc(epoch, 100)), 0);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  stale_check(epoch);
}

struct visitor {
  tslab_epoch epoch;
  int error;
  sem_t inside, go_on, left;
  void *block;
};

static void *visitor_run(void *data) {
  struct visitor *visitor = data;
  tslab_scope scope;
  scope_enter(&scope, visitor->epoch);
  sem_post(&visitor->inside);
  sem_wait(&visitor->go_on);
  visitor->block = malloc(100);
  CHECK_LANDS(visitor->epoch, visitor->block);
  scope_leave(&scope, TSLAB_DEFAULT);
  sem_post(&visitor->left);
  return NULL;
}

static void visitor_start(struct visitor *visitor, pthread_t *thread) {
  *visitor = (struct visitor){.epoch = epoch_open(NULL)};
  sem_init(&visitor->inside, 0, 0);
  sem_init(&visitor->go_on, 0, 0);
  sem_init(&visitor->left, 0, 0);
  CHECK_EQ(pthread_create(thread, NULL, visitor_run, visitor), 0);
  sem_wait(&visitor->inside);
}

// A thread that is inside goes on; what it allocates then lives as long as any object.
static void close_while_inside_test(void) {
  struct visitor visitor;
  pthread_t thread;
  visitor_start(&visitor, &thread);
  CHECK_EQ(tslab_epoch_close(visitor.epoch).objects, 0);
  closed_check(visitor.epoch);
  sem_post(&visitor.go_on);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  closed_check(visitor.epoch);
  CHECK_LANDS(visitor.epoch, visitor.block);
  free(visitor.block);
  stale_check(visitor.epoch);
}

static void visitor_leaves(void *data) {
  struct visitor *visitor = data;
  sem_post(&visitor->go_on);
  sem_wait(&visitor->left);
  free(visitor->block);
}

// Epochs that are open at once have nothing in common.
static void next_epochs_check(void) {
  enum { NEXT = 20 };
  tslab_epoch ids[NEXT];
  void *blocks[NEXT];
  for (int i = 0; i < NEXT; i++) {
    ids[i] = epoch_open(NULL);
    for (int earlier = 0; earlier < i; earlier++) CHECK_NE(ids[earlier], ids[i]);
    blocks[i] = tslab_epoch_malloc(ids[i], 100);
    CHECK_LANDS(ids[i], blocks[i]);
  }
  for (int i = 0; i < NEXT; i++) {
    CHECK_EQ(tslab_epoch_close(ids[i]).objects, 1);
    CHECK_LANDS(ids[i], blocks[i]);
    free(blocks[i]);
    stale_check(ids[i]);
  }
}

// The last thread leaves after the epoch was closed and before closing came to the threads: the id
// stays until closing is done, and no new epoch gets mixed up with it.
static void leave_while_closing_test(void) {
  struct visitor visitor;
  pthread_t thread;
  visitor_start(&visitor, &thread);
  CHECK_EQ(tslab_epoch_defer(visitor.epoch, visitor_leaves, &visitor), 0);
  tslab_survivors left = tslab_epoch_close(visitor.epoch);
  CHECK_EQ(left.error, 0);
  CHECK_EQ(left.objects, 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  stale_check(visitor.epoch);
  next_epochs_check();
}

// Closing and releasing by a thread that is inside take effect when it leaves.
static void end_from_inside_test(void) {
  tslab_scope scope, inner;
  for (int release = 0; release < 2; release++) {
    tslab_epoch epoch = epoch_open(NULL);
    scope_enter(&scope, epoch);
    scope_enter(&inner, epoch);
    void *block = malloc(100);
    if (release)
      CHECK_EQ(tslab_epoch_release(epoch), 0);
    else
      CHECK_EQ(tslab_epoch_close(epoch).error, 0);
    CHECK_EQ(epoch_stats(epoch).state, release ? TSLAB_RELEASED : TSLAB_CLOSED);
    scope_leave(&inner, epoch);
    scope_leave(&scope, TSLAB_DEFAULT);
    if (!release) {
      CHECK_LANDS(epoch, block);
      free(block);
    }
    stale_check(epoch);
  }
}

static void *ends_inside_run(void *data) {
  static _Thread_local tslab_scope scopes[3];
  struct visitor *visitor = data;
  scope_enter(&scopes[0], visitor->epoch);
  CHECK_EQ(tslab_scope_default(&scopes[1]), 0);
  scope_enter(&scopes[2], visitor->epoch);
  visitor->block = malloc(100);
  return NULL;
}

static void thread_ends_inside_test(void) {
  for (int round = 0; round < 10; round++) {
    struct visitor visitor = {.epoch = epoch_open(NULL)};
    thread_run(ends_inside_run, &visitor);
    CHECK_EQ(epoch_stats(visitor.epoch).scopes, 0);
    CHECK_EQ(tslab_epoch_close(visitor.epoch).objects, 1);
    free(visitor.block);
    stale_check(visitor.epoch);
  }
}

int main(void) {
  survivors_test();
  drain_gives_back_test();
  release_test();
  child_keeps_parent_test();
  defer_test();
  defer_frees_test();
  close_while_inside_test();
  end_from_inside_test();
  thread_ends_inside_test();
  leave_while_closing_test();
  return 0;
}
