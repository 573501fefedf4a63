#include "epoch/large_list.h"

#include "epochs.h"
#include "memory/record.h"
#include "os_fake.h"
#include "state/epoch.h"
#include "threads.h"

enum { KIB = 1 << 10, MIB = 1 << 20, BYTES = 100 * KIB, HELD = 128 * KIB, BLOCKS = 60 };

static void *blocks[BLOCKS];

static const struct tsl_epoch *record(tslab_epoch epoch) {
  return tsl_epoch_at(tsl_epoch_slot(epoch));
}

// The list names each block once, and its sums are right.
static void check_list(tslab_epoch epoch, size_t count, size_t bytes) {
  size_t listed = 0, sum = 0;
  tsl_unit before = 0;
  for (tsl_unit at = record(epoch)->large; at != 0; before = at, at = tsl_span_at(at)->next) {
    CHECK_EQ(tsl_span_at(at)->prev, before);
    CHECK_EQ(tsl_span_at(at)->epoch, tsl_epoch_slot(epoch));
    sum += tsl_span_at(at)->bytes;
    CHECK_LE(++listed, count);
  }
  CHECK_EQ(listed, count);
  CHECK_EQ(sum, bytes);
  CHECK_EQ(record(epoch)->large_blocks, count);
  CHECK_EQ(record(epoch)->large_bytes, bytes);
  CHECK_EQ(epochs_stats(epoch).held_bytes, bytes);
  CHECK_EQ(epochs_stats(epoch).live_bytes, bytes);
}

static void listed_in_every_order(void) {
  tslab_epoch epoch = epochs_open();
  check_list(epoch, 0, 0);
  epochs_alloc_many(blocks, epoch, BYTES, 5);
  check_list(epoch, 5, 5 * HELD);
  static const int order[] = {2, 4, 0, 1, 3};
  for (size_t i = 0; i < 5; i++) {
    epochs_free(blocks[order[i]], BYTES);
    check_list(epoch, 4 - i, (4 - i) * HELD);
  }
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

static void blocks_of_the_default_epoch_are_on_no_list(void) {
  tslab_epoch epoch = epochs_open();
  void *listed = epochs_alloc(epoch, BYTES);
  for (int i = 0; i < 10; i++) blocks[i] = tslab_malloc(BYTES);
  CHECK_EQ(tsl_epoch_at(0)->large, 0);
  CHECK_EQ(tsl_epoch_at(0)->large_blocks, 0);
  check_list(epoch, 1, HELD);
  blocks[0] = tslab_realloc(blocks[0], 9 * MIB);
  for (int i = 0; i < 10; i++) tslab_free(blocks[i]);
  check_list(epoch, 1, HELD);
  epochs_free(listed, BYTES);
}

// A unit that was an epoch's before belongs to the default epoch afterwards, and the other way.
static void memory_changes_its_epoch(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  epochs_free(block, BYTES);
  CHECK(tslab_malloc(BYTES) == block);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  check_list(epoch, 0, 0);
  tslab_free(block);
  CHECK(epochs_alloc(epoch, BYTES) == block);
  CHECK_EQ(tslab_epoch_of(block), epoch);
  check_list(epoch, 1, HELD);
}

static void *free_half(void *unused) {
  for (int i = 0; i < BLOCKS; i += 2) epochs_free(blocks[i], BYTES);
  return unused;
}

static void any_thread_frees(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, BLOCKS);
  threads_run_one(free_half, NULL);
  check_list(epoch, BLOCKS / 2, BLOCKS / 2 * HELD);
  CHECK_EQ(epochs_close(epoch, BLOCKS / 2).bytes, BLOCKS / 2 * HELD);
  for (int i = 1; i < BLOCKS; i++) blocks[i - 1] = blocks[i];
  threads_run_one(free_half, NULL);
  CHECK(epochs_is_over(epoch));
  epochs_check_all_free();
}

static uint32_t taken;
static tslab_epoch shared;

static void *alloc_resize_free(void *unused) {
  uint64_t seed = tsl_add_relaxed(&taken, 1);
  for (int i = 0; i < 200; i++) {
    size_t bytes = BYTES + test_random_below(&seed, 4) * HELD;
    void *block = epochs_alloc(shared, bytes);
    block = tslab_realloc(block, bytes + HELD);
    CHECK(block != NULL && pattern_is(block, bytes, (unsigned)bytes, bytes));
    CHECK_EQ(tslab_epoch_of(block), shared);
    tslab_free(block);
  }
  return unused;
}

static void threads_share_a_list(void) {
  os_fake.limit_bytes = OS_FAKE_MOST_BYTES;
  shared = epochs_open();
  void *kept = epochs_alloc(shared, BYTES);
  threads_run(alloc_resize_free, NULL);
  tslab_epoch_stats stats = epochs_stats(shared);
  CHECK_EQ(stats.live_objects, 1);
  CHECK_EQ(stats.held_bytes, HELD);
  CHECK_EQ(record(shared)->large_bytes, HELD);
  CHECK_EQ(record(shared)->large_blocks, 1);
  epochs_free(kept, BYTES);
}

static void resized_in_place(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, 3 * MIB), *second = epochs_alloc(epoch, BYTES);
  check_list(epoch, 2, 3 * MIB + HELD);
  CHECK(tslab_realloc(block, MIB) == block);
  check_list(epoch, 2, MIB + HELD);
  CHECK(tslab_realloc(block, 3 * MIB) == block);
  check_list(epoch, 2, 3 * MIB + HELD);
  CHECK(pattern_is(block, 3 * MIB, 3 * MIB, MIB));
  epochs_free(second, BYTES);
  tslab_free(block);
  check_list(epoch, 0, 0);
}

// Pages move, in the middle of the list as well.
static void resized_by_moving(void) {
  tslab_epoch epoch = epochs_open();
  void *older = epochs_alloc(epoch, BYTES), *block = epochs_alloc(epoch, 3 * MIB);
  void *wall = epochs_alloc(epoch, BYTES);
  uint64_t moves = os_fake.calls[OS_FAKE_MOVE];
  char *moved = tslab_realloc(block, 9 * MIB);
  CHECK_EQ(os_fake.calls[OS_FAKE_MOVE], moves + 1);
  CHECK(moved != NULL && moved != block);
  CHECK(pattern_is(moved, 3 * MIB, 3 * MIB, 3 * MIB));
  CHECK_EQ(tslab_epoch_of(moved), epoch);
  check_list(epoch, 3, 9 * MIB + 2 * HELD);
  epochs_free(older, BYTES);
  epochs_free(wall, BYTES);
  check_list(epoch, 1, 9 * MIB);
  tslab_free(moved);
  check_list(epoch, 0, 0);
}

static void resized_by_copying(void) {
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES), *wall = epochs_alloc(epoch, BYTES);
  char *moved = tslab_realloc(block, MIB);
  CHECK(moved != block && pattern_is(moved, BYTES, BYTES, BYTES));
  CHECK_EQ(tslab_epoch_of(moved), epoch);
  check_list(epoch, 2, MIB + HELD);
  char *small = tslab_realloc(moved, 1000);
  CHECK_EQ(tslab_epoch_of(small), epoch);
  CHECK_EQ(record(epoch)->large_blocks, 1);
  CHECK_EQ(record(epoch)->large_bytes, HELD);
  epochs_free(wall, BYTES);
  CHECK_EQ(epochs_stats(epoch).live_objects, 1);
}

// Refusals: by the system, of the move, and by a limit.
static void check_refused_resize(tslab_epoch epoch, void *block) {
  CHECK_REFUSED(tslab_realloc(block, (size_t)1 << 30), ENOMEM);
  CHECK(pattern_is(block, 3 * MIB, 3 * MIB, 3 * MIB));
  CHECK_EQ(tslab_epoch_of(block), epoch);
  check_list(epoch, 2, 3 * MIB + HELD);
}

static void refused_memory_leaves_all_as_before(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc(epoch, BYTES);
  void *block = epochs_alloc(epoch, 3 * MIB);
  check_refused_resize(epoch, block);
  os_fake_fail_all(OS_FAKE_FALLIBLE);
  check_refused_resize(epoch, block);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 64 * MIB), ENOMEM);
  check_list(epoch, 2, 3 * MIB + HELD);
  os_fake_recover();
  tslab_free(block);
  check_list(epoch, 1, HELD);
}

static void refused_moves_are_copies(void) {
  tslab_epoch epoch = epochs_open();
  for (int lost = 0; lost < 2; lost++) {
    void *block = epochs_alloc(epoch, 3 * MIB);
    void *wall = epochs_alloc(epoch, BYTES);
    os_fake.places_get_lost = lost != 0;
    os_fake_fail_next(OS_FAKE_MOVE);
    char *copy = tslab_realloc(block, 5 * MIB);
    CHECK(copy != NULL && copy != block);
    CHECK(pattern_is(copy, 3 * MIB, 3 * MIB, 3 * MIB));
    CHECK_EQ(tslab_epoch_of(copy), epoch);
    check_list(epoch, 2, 5 * MIB + HELD);
    tslab_free(copy);
    epochs_free(wall, BYTES);
    check_list(epoch, 0, 0);
  }
}

static void limits_hold_for_resizing(void) {
  tslab_epoch parent = EPOCHS_OPEN(.hard_limit_bytes = 8 * MIB);
  tslab_epoch epoch = EPOCHS_OPEN(.parent = parent);
  void *block = epochs_alloc(epoch, 6 * MIB);
  CHECK_REFUSED(tslab_realloc(block, 9 * MIB), ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 3 * MIB), ENOMEM);
  check_list(epoch, 1, 6 * MIB);
  CHECK_EQ(epochs_stats(parent).held_bytes, 6 * MIB);
  block = tslab_realloc(block, 8 * MIB);
  CHECK(pattern_is(block, 6 * MIB, 6 * MIB, 6 * MIB));
  check_list(epoch, 1, 8 * MIB);
  CHECK_EQ(epochs_stats(parent).held_bytes, 8 * MIB);
  block = tslab_realloc(block, 2 * MIB);
  check_list(epoch, 1, 2 * MIB);
  CHECK_EQ(epochs_stats(parent).held_bytes, 2 * MIB);
  tslab_free(block);
  CHECK_EQ(epochs_stats(parent).held_bytes, 0);
}

static void aligned_blocks_are_listed(void) {
  tslab_epoch epoch = epochs_open();
  char *block = tslab_epoch_aligned_alloc(epoch, MIB, BYTES);
  CHECK(block != NULL && (uintptr_t)block % MIB == 0);
  check_list(epoch, 1, HELD);
  CHECK(tslab_epoch_calloc(epoch, 3, BYTES) != NULL);
  check_list(epoch, 2, HELD + 5 * 64 * KIB);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  epochs_check_all_free();
}

static void release_frees_them(void) {
  tslab_epoch epoch = epochs_open(), other = epochs_open();
  for (int i = 0; i < 20; i++) {
    blocks[i] = epochs_alloc(epoch, BYTES);
    epochs_alloc(other, BYTES);
  }
  for (int i = 0; i < 5; i++) epochs_free(blocks[i * 3], BYTES);
  epochs_close(other, 20);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  CHECK(epochs_is_over(epoch));
  CHECK_EQ(tslab_epoch_of(blocks[1]), TSLAB_NO_EPOCH);
  CHECK_EQ(record(other)->large_blocks, 20);
  CHECK_EQ(tslab_epoch_release(other), 0);
  CHECK(epochs_is_over(other));
  epochs_check_all_free();
}

int main(void) {
  RUN(listed_in_every_order);
  RUN(blocks_of_the_default_epoch_are_on_no_list);
  RUN(memory_changes_its_epoch);
  RUN(any_thread_frees);
  RUN(threads_share_a_list);
  RUN(resized_in_place);
  RUN(resized_by_moving);
  RUN(resized_by_copying);
  RUN(refused_memory_leaves_all_as_before);
  RUN(refused_moves_are_copies);
  RUN(limits_hold_for_resizing);
  RUN(aligned_blocks_are_listed);
  RUN(release_frees_them);
  return test_status();
}
