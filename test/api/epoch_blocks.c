// Blocks that a program asks of an epoch by its id, and blocks that realloc moves.
#include "epochs.h"

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

int main(void) {
  explicit_sizes_test();
  explicit_aligned_test();
  explicit_realloc_test();
  realloc_stays_test();
  return 0;
}
