// Epochs as a program meets them: how they open, and what lands where.
#include <stdarg.h>

#include "epochs.h"

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

static void options_test(void) {
  char label[80];
  memset(label, 'x', sizeof label);
  label[TSLAB_LABEL_BYTES - 1] = '\0';
  tslab_epoch epoch = tslab_epoch_open(label, NULL);
  CHECK(strcmp(epoch_stats(epoch).label, label) == 0);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  label[TSLAB_LABEL_BYTES - 1] = 'x';
  label[TSLAB_LABEL_BYTES] = '\0';
  errno = 0;
  CHECK_EQ(tslab_epoch_open(label, NULL), TSLAB_NO_EPOCH);
  CHECK_EQ(errno, EINVAL);
  tslab_epoch_options options = {.size = sizeof options + 1};
  errno = 0;
  CHECK_EQ(tslab_epoch_open("test", &options), TSLAB_NO_EPOCH);
  CHECK_EQ(errno, EINVAL);
  options = (tslab_epoch_options){.size = sizeof options, .purge = (enum tslab_purge)9};
  errno = 0;
  CHECK_EQ(tslab_epoch_open("test", &options), TSLAB_NO_EPOCH);
  CHECK_EQ(errno, EINVAL);
  for (enum tslab_purge purge = TSLAB_PURGE_DECAY; purge <= TSLAB_PURGE_NOW; purge++) {
    options.purge = purge;
    epoch = epoch_open(&options);
    CHECK(tslab_epoch_calloc(epoch, 1, 10 * MIB) != NULL);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    stale_check(epoch);
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
  options_test();
  ids_test();
  return 0;
}
