// Epochs as a program meets them: what lands where, and how lifetimes end.
#include <semaphore.h>
#include <stdarg.h>

#include "epochs.h"

static void free_all(void **blocks, int count) {
  for (int i = 0; i < count; i++) free(blocks[i]);
}

// Whatever a program calls by the name it always had.
static void plain_names_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  tslab_scope scope;
  scope_enter(&scope, epoch);
  void *posix = NULL;
  CHECK_EQ(posix_memalign(&posix, 256, 1000), 0);
  void *blocks[] = {malloc(0),
                    malloc(100),
                    malloc(20000),
                    malloc(300 * KIB),
                    calloc(10, 100),
                    calloc(1, MIB),
                    strdup("a text"),
                    strndup("text", 2),
                    reallocarray(NULL, 10, 10),
                    realloc(NULL, 3000),
                    memalign(4096, 10),
                    aligned_alloc(128, 256),
                    posix};
  enum { BLOCKS = sizeof blocks / sizeof *blocks };
  for (int i = 0; i < BLOCKS; i++) {
    check_context_set("block %d", i);
    CHECK_LANDS(epoch, blocks[i]);
  }
  check_context_set("%s", "");
  CHECK(is_aligned(posix, 256) && is_aligned(blocks[10], 4096) && is_aligned(blocks[11], 128));
  CHECK_EQ(epoch_stats(epoch).live_objects, BLOCKS);
  scope_leave(&scope, TSLAB_DEFAULT);
  void *outside = malloc(100);
  CHECK_LANDS(TSLAB_DEFAULT, outside);
  free(outside);
  free_all(blocks, BLOCKS);
  CHECK_EQ(epoch_stats(epoch).live_objects, 0);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  stale_check(epoch);
}

static int numbers_compare(const void *left, const void *right) {
  int first = *(const int *)left, second = *(const int *)right;
  return (first > second) - (first < second);
}

// Larger than what qsort would sort on its stack.
static void sort(void) {
  enum { NUMBERS = 5000 };
  int *numbers = malloc(NUMBERS * sizeof *numbers);
  for (int i = 0; i < NUMBERS; i++) numbers[i] = i * 7919 % NUMBERS;
  qsort(numbers, NUMBERS, sizeof *numbers, numbers_compare);
  for (int i = 0; i < NUMBERS; i++) CHECK_EQ(numbers[i], i);
  free(numbers);
}

// What the C library allocates lies in the default epoch; what it resizes stays in its own.
static void library_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  tslab_scope scope;
  char *line = NULL, *text = NULL, *stream_text = NULL;
  size_t size = 1, stream_size = 0;
  scope_enter(&scope, epoch);
  line = malloc(size);
  FILE *file = fopen("/proc/self/status", "r"), *stream;
  CHECK_LANDS(TSLAB_DEFAULT, file);
  CHECK(getline(&line, &size, file) > 0 && strncmp(line, "Name:", 5) == 0);
  CHECK_LANDS(epoch, line);
  CHECK_EQ(asprintf(&text, "%s and %1000d", line, 7), (int)strlen(line) + 1005);
  CHECK_LANDS(TSLAB_DEFAULT, text);
  stream = open_memstream(&stream_text, &stream_size);
  fprintf(stream, "%5000d", 1);
  size_t before = epoch_stats(epoch).live_objects;
  sort();
  CHECK_EQ(epoch_stats(epoch).live_objects, before);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK(getline(&line, &size, file) > 0);
  fclose(file);
  fclose(stream);
  CHECK_LANDS(TSLAB_DEFAULT, stream_text);
  CHECK_EQ(stream_size, 5000);
  tslab_survivors left = tslab_epoch_close(epoch);
  CHECK_EQ(left.error, 0);
  CHECK_EQ(left.objects, 1);
  closed_check(epoch);
  free(line);
  free(text);
  free(stream_text);
  stale_check(epoch);
}

// Two epochs and the default one, in turn, a hundred deep.
static void nesting_test(void) {
  enum { DEPTH = 100 };
  tslab_scope scopes[DEPTH];
  void *blocks[DEPTH];
  tslab_epoch ids[] = {epoch_open(NULL), TSLAB_DEFAULT, epoch_open(NULL)};
  for (int i = 0; i < DEPTH; i++) {
    if (i % 3 == 1)
      CHECK_EQ(tslab_scope_default(&scopes[i]), 0);
    else
      scope_enter(&scopes[i], ids[i % 3]);
    blocks[i] = malloc(50);
  }
  CHECK_EQ(epoch_stats(ids[0]).scopes, 34);
  CHECK_EQ(epoch_stats(ids[2]).scopes, 33);
  for (int i = DEPTH; i-- > 0;) {
    CHECK_LANDS(ids[i % 3], blocks[i]);
    void *late = malloc(70);
    CHECK_LANDS(ids[i % 3], late);
    free(late);
    scope_leave(&scopes[i], i == 0 ? TSLAB_DEFAULT : ids[(i - 1) % 3]);
  }
  CHECK_EQ(epoch_stats(ids[0]).scopes, 0);
  CHECK_EQ(tslab_epoch_close(ids[0]).objects, 34);
  CHECK_EQ(tslab_epoch_close(ids[2]).objects, 33);
  free_all(blocks, DEPTH);
  stale_check(ids[0]);
  stale_check(ids[2]);
}

// A refused scope leaves the thread where it is, also inside others.
static void refused_scope_test(void) {
  tslab_epoch outer = epoch_open(NULL), closed = epoch_open(NULL);
  void *survivor = tslab_epoch_malloc(closed, 10);
  CHECK_EQ(tslab_epoch_close(closed).objects, 1);
  tslab_scope scope, refused;
  scope_enter(&scope, outer);
  CHECK_EQ(tslab_scope_enter(&refused, closed), ECANCELED);
  CHECK_EQ(tslab_scope_enter(&refused, TSLAB_NO_EPOCH), ESTALE);
  void *block = malloc(10);
  CHECK_LANDS(outer, block);
  scope_leave(&scope, TSLAB_DEFAULT);
  free(survivor);
  stale_check(closed);
  stale_check(TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_release(outer), 0);
}

static void explicit_sizes_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  for (size_t size = 0; size <= 2 * MIB; size = size_next(size)) {
    unsigned char *block = tslab_epoch_malloc(epoch, size);
    unsigned char *zeroed = tslab_epoch_calloc(epoch, 3, size);
    block_check(block, size);
    block_check(zeroed, 3 * size);
    CHECK_LANDS(epoch, block);
    CHECK_LANDS(epoch, zeroed);
    for (size_t i = 0; i < 3 * size; i++) CHECK(zeroed[i] == 0);
    memset(zeroed, 1, 3 * size);
    pattern_fill(block, size, 3);
    free(zeroed);
    pattern_check(block, size, 3);
    free(block);
  }
  CHECK_EQ(epoch_stats(epoch).live_objects, 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

static void explicit_aligned_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
    for (size_t size = 1; size <= 100 * KIB; size = size * 3 + 1) {
      void *block = tslab_epoch_aligned_alloc(epoch, alignment, size);
      CHECK_THAT(block != NULL && is_aligned(block, alignment), "%zu at %zu gave %p", size,
                 alignment, block);
      CHECK_LANDS(epoch, block);
      pattern_fill(block, size, 9);
      pattern_check(block, size, 9);
      if (size % 2 == 0) free(block);
    }
  }
  const volatile size_t impossible = SIZE_IMPOSSIBLE, half = SIZE_MAX / 2 + 1;
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 48, 100), EINVAL);
  CHECK_REFUSED(tslab_epoch_aligned_alloc(epoch, 64, impossible), ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, impossible), ENOMEM);
  CHECK_REFUSED(tslab_epoch_calloc(epoch, half, 2), ENOMEM);
  CHECK_REFUSED(tslab_epoch_realloc(epoch, NULL, impossible), ENOMEM);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

// Moves a block from epoch to epoch; the content moves with it. Each kind of memory is met on the
// way, at last a block that is larger than a segment.
static void explicit_realloc_test(void) {
  enum { STEPS = 30 };
  tslab_epoch ids[] = {epoch_open(NULL), TSLAB_DEFAULT, epoch_open(NULL)};
  unsigned char *block = NULL;
  size_t size = 0;
  for (unsigned step = 0; step < STEPS; step++) {
    size_t larger = size + size / 2 + 16;
    block = tslab_epoch_realloc(ids[step % 3], block, larger);
    CHECK(block != NULL);
    pattern_check(block, size, step);
    size = larger;
    pattern_fill(block, size, step + 1);
    tslab_epoch at = tslab_epoch_of(block);
    CHECK_THAT(at == ids[step % 3] || step > 0, "0x%llx", (unsigned long long)at);
  }
  block = tslab_epoch_realloc(ids[0], block, 200 * MIB);
  CHECK(block != NULL);
  pattern_check(block, size, STEPS);
  CHECK(tslab_epoch_realloc(ids[0], block, 0) == NULL);
  CHECK_EQ(tslab_epoch_close(ids[0]).objects, 0);
  CHECK_EQ(tslab_epoch_close(ids[2]).objects, 0);
}

// Plain realloc keeps a block in its epoch while that is open, wherever the thread is.
static void realloc_stays_test(void) {
  tslab_epoch epoch = epoch_open(NULL), other = epoch_open(NULL);
  tslab_scope scope;
  unsigned char *block = tslab_epoch_malloc(epoch, 10);
  unsigned char *late = tslab_epoch_malloc(epoch, 10);
  pattern_fill(block, 10, 1);
  scope_enter(&scope, other);
  block = realloc(block, 5000);
  CHECK_LANDS(epoch, block);
  pattern_check(block, 10, 1);
  block = realloc(block, 100 * KIB);
  CHECK_LANDS(epoch, block);
  CHECK_EQ(tslab_epoch_current(), other);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 2);
  late = realloc(late, 5000);
  CHECK_LANDS(TSLAB_DEFAULT, late);
  free(late);
  free(block);
  stale_check(epoch);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_close(other).objects, 0);
}

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

// Whatever called malloc: the release spares what was kept, to the last byte.
static void keep_test(void) {
  static const size_t sizes[] = {0, 16, 100, 1000, 5000, 30000, 300 * KIB};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  for (int by_close = 0; by_close < 2; by_close++) {
    tslab_epoch epoch = epoch_open(NULL);
    tslab_scope scope;
    char *kept[SIZES];
    scope_enter(&scope, epoch);
    for (int i = 0; i < SIZES; i++) {
      kept[i] = memset(malloc(sizes[i]), i, sizes[i]);
      CHECK(malloc(sizes[i]) != NULL);
      CHECK_EQ(tslab_epoch_keep(kept[i]), 0);
    }
    scope_leave(&scope, TSLAB_DEFAULT);
    if (by_close) CHECK_EQ(tslab_epoch_close(epoch).objects, 2 * SIZES);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(epoch_stats(epoch).live_objects, SIZES);
    CHECK_EQ(epoch_stats(epoch).state, TSLAB_RELEASED);
    for (int i = 0; i < SIZES; i++) {
      CHECK_LANDS(epoch, kept[i]);
      for (size_t at = 0; at < sizes[i]; at++) CHECK_EQ(kept[i][at], i);
      free(kept[i]);
    }
    stale_check(epoch);
  }
}

static void keep_in_default_test(void) {
  char *block = malloc(100);
  CHECK_EQ(tslab_epoch_keep(block), 0);
  CHECK_EQ(tslab_epoch_keep(block + 1), EFAULT);
  CHECK_EQ(tslab_epoch_keep(NULL), EFAULT);
  free(block);
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

// Ids of one slot follow each other and are never the same.
static void ids_test(void) {
  enum { IDS = 1000 };
  static tslab_epoch ids[IDS];
  for (int i = 0; i < IDS; i++) {
    ids[i] = epoch_open(NULL);
    CHECK_EQ(tslab_epoch_close(ids[i]).error, 0);
    for (int earlier = 0; earlier < i; earlier++) CHECK(ids[earlier] != ids[i]);
  }
  for (int i = 0; i < IDS; i += 100) stale_check(ids[i]);
}

int main(void) {
  plain_names_test();
  library_test();
  nesting_test();
  refused_scope_test();
  explicit_sizes_test();
  explicit_aligned_test();
  explicit_realloc_test();
  realloc_stays_test();
  survivors_test();
  drain_gives_back_test();
  release_test();
  keep_test();
  keep_in_default_test();
  child_keeps_parent_test();
  defer_test();
  defer_frees_test();
  close_while_inside_test();
  end_from_inside_test();
  thread_ends_inside_test();
  ids_test();
  leave_while_closing_test();
  return 0;
}
