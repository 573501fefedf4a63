#include "base/tools.h"

#include "epochs.h"
#include "os_fake.h"

enum { BYTES = 100, LARGE_BYTES = 200000, MANY = 5000 };

static void *blocks[MANY];

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
static bool has_ended(const void *at) { return __asan_address_is_poisoned(at) != 0; }
#else
enum { MOST_TOLD = 4096 };
static struct told {
  uintptr_t start, end;
  bool ends;
} told[MOST_TOLD];
static unsigned told_count;

static void note(const volatile void *start, size_t bytes, bool ends) {
  CHECK(told_count < MOST_TOLD);
  told[told_count++] = (struct told){(uintptr_t)start, (uintptr_t)start + bytes, ends};
}

// In the place of the sanitizer's.
void __asan_poison_memory_region(const volatile void *start, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *start, size_t bytes);
void __asan_poison_memory_region(const volatile void *start, size_t bytes) {
  note(start, bytes, true);
}
void __asan_unpoison_memory_region(const volatile void *start, size_t bytes) {
  note(start, bytes, false);
}

static bool has_ended(const void *at) {
  for (unsigned i = told_count; i-- != 0;)
    if ((uintptr_t)at >= told[i].start && (uintptr_t)at < told[i].end) return told[i].ends;
  return false;
}
#endif

static void start(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  tslab_free(tslab_malloc(1));
  CHECK(tsl_tools_watch);
}

static void check_block(const void *block, size_t bytes, bool ended) {
  CHECK_EQ(has_ended(block), ended);
  CHECK_EQ(has_ended((const char *)block + bytes - 1), ended);
}

static void check_blocks(size_t bytes, unsigned count, bool ended) {
  for (unsigned i = 0; i < count; i++) check_block(blocks[i], bytes, ended);
}

// Allocated, ended by a release, and allocated again.
static void check_release(const tslab_epoch_options *options, size_t bytes, unsigned count) {
  for (int round = 0; round < 2; round++) {
    tslab_epoch epoch = epochs_open_with(options);
    epochs_alloc_many(blocks, epoch, bytes, count);
    check_blocks(bytes, count, false);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    check_blocks(bytes, count, true);
  }
  tslab_epoch other = tslab_epoch_open("other", NULL);
  epochs_alloc_many(blocks, other, bytes, count);
  check_blocks(bytes, count, false);
  state_check();
}

static void objects_in_cells_end(void) {
  start();
  check_release(NULL, BYTES, 1);
  check_release(NULL, BYTES, MANY);
}

static void objects_in_slabs_end(void) {
  const tslab_epoch_options slabs = {.size = sizeof slabs, .first_cell_bytes = TSLAB_NO_CELLS};
  start();
  check_release(&slabs, BYTES, MANY);
}

static void large_objects_end(void) {
  start();
  check_release(NULL, LARGE_BYTES, 10);
}

static void a_block_that_grows_is_allocated_as_a_whole(void) {
  start();
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, LARGE_BYTES, 10);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  char *block = tslab_malloc(LARGE_BYTES);
  block = tslab_realloc(block, 10 * LARGE_BYTES);
  CHECK(block != NULL);
  for (size_t i = 0; i < 10 * LARGE_BYTES; i += 4096) CHECK(!has_ended(block + i));
  tslab_free(block);
}

static void survivors_end_with_a_late_release(void) {
  start();
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, MANY);
  epochs_free_many(blocks + 1, BYTES, MANY - 1);
  epochs_close(epoch, 1);
  check_block(blocks[0], BYTES, false);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  check_block(blocks[0], BYTES, true);
}

static void the_last_free_ends_a_closed_epoch(void) {
  start();
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, 2);
  epochs_close(epoch, 2);
  epochs_free(blocks[0], BYTES);
  check_blocks(BYTES, 2, false);
  epochs_free(blocks[1], BYTES);
  CHECK(epochs_is_over(epoch));
  check_blocks(BYTES, 2, true);
}

// The memory that it keeps begins again at once.
static void a_reset_leaves_the_epoch_its_memory(void) {
  start();
  tslab_epoch epoch = epochs_open();
  for (int round = 0; round < 3; round++) {
    epochs_alloc_many(blocks, epoch, BYTES, MANY);
    check_blocks(BYTES, MANY, false);
    CHECK_EQ(tslab_epoch_reset(epoch), 0);
  }
  state_check();
}

static void the_hardened_build_tells_nothing(void) {
  tslab_free(tslab_malloc(1));
  CHECK_EQ(tsl_tools_watch, !TSL_SECURE);
}

int main(void) {
  RUN_UNLESS_SECURE(objects_in_cells_end);
  RUN_UNLESS_SECURE(objects_in_slabs_end);
  RUN_UNLESS_SECURE(large_objects_end);
  RUN_UNLESS_SECURE(a_block_that_grows_is_allocated_as_a_whole);
  RUN_UNLESS_SECURE(survivors_end_with_a_late_release);
  RUN_UNLESS_SECURE(the_last_free_ends_a_closed_epoch);
  RUN_UNLESS_SECURE(a_reset_leaves_the_epoch_its_memory);
  RUN(the_hardened_build_tells_nothing);
  return test_status();
}
