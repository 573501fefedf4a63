#include "state/misuse.h"

#include "blocks.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static void check_said(const char *said, const void *block, const char *what, const char *rest) {
  char first[96];
  snprintf(first, sizeof first, "tslab: free(%p): %s", block, what);
  CHECK_EQ(capture_lines(said), 1);
  CHECK_THAT(strncmp(said, first, strlen(first)) == 0, "%s", said);
  CHECK_THAT(strstr(said, rest) != NULL, "%s", said);
}

static void size_epoch_and_calls_are_named(void) {
  open_heaps();
  void *block = alloc(50);
  tsl_fast_free(block);
  check_said(blocks_free_and_hear(block), block, "the block is free already",
             "; 64 bytes, default epoch; called from 0x");
}

static void labels_are_named(void) {
  open_heaps();
  tslab_epoch id;
  tslab_epoch_options options = {.first_cell_bytes = 4096};
  CHECK_EQ(tsl_epoch_open(tsl_label_intern("request"), &options, &id), 0);
  tsl_heap_current = &tsl_part_take(heap->home, tsl_epoch_slot(id))->heap;
  void *block = alloc(50);
  char rest[96];
  snprintf(rest, sizeof rest, "; 64 bytes, epoch %llu \"request\"; called", (unsigned long long)id);
  tsl_fast_free(block);
  check_said(blocks_free_and_hear(block), block, "the block is free already", rest);
}

static void large_blocks_have_their_size(void) {
  open_heaps();
  char *block = tsl_fast_malloc(100000);
  check_said(blocks_free_and_hear(block + 16), block + 16, "not the beginning of a block",
             "; 131072 bytes, default epoch");
}

static void strangers_have_neither(void) {
  open_heaps();
  int local = 0;
  const char *said = blocks_free_and_hear(&local);
  check_said(said, &local, "not a block of this allocator", "; called from 0x");
  CHECK(strstr(said, "epoch") == NULL && strstr(said, "bytes") == NULL);
}

static void nothing_is_said_when_ignored(void) {
  open_heaps();
  void *block = alloc(50);
  tsl_fast_free(block);
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  capture_start();
  tsl_fast_free(block);
  CHECK_EQ(capture_end()[0], '\0');
}

int main(void) {
  RUN(size_epoch_and_calls_are_named);
  RUN(labels_are_named);
  RUN(large_blocks_have_their_size);
  RUN(strangers_have_neither);
  RUN(nothing_is_said_when_ignored);
  return test_status();
}
