#include "base/options.h"
#include "epochs.h"
#include "os/os.h"
#include "os_fake.h"
#include "threads.h"

enum { BYTES = 48, MANY = 300, ROUNDS = 20000 };

static const size_t sizes[] = {0, BYTES, 1000, 9000, 40000, 200000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static volatile size_t most = SIZE_MAX;
static tslab_handle handles[MANY];

static tslab_handle alloc(tslab_epoch epoch, size_t bytes) {
  tslab_handle handle = tslab_handle_alloc(epoch, bytes);
  CHECK(handle.block != NULL);
  CHECK(tslab_handle_get(handle) == handle.block);
  CHECK_EQ((uintptr_t)handle.block % 16, 0);
  pattern_write(handle.block, bytes, (unsigned)bytes);
  return handle;
}

static void check_gone(tslab_handle handle) {
  CHECK(tslab_handle_get(handle) == NULL);
  CHECK(!tslab_handle_free(handle));
}

static void free_one(tslab_handle handle) {
  CHECK(tslab_handle_free(handle));
  check_gone(handle);
}

static void a_handle_of_nothing(void) {
  tslab_handle nothing = {0};
  check_gone(nothing);
  epochs_free(epochs_alloc(epochs_open(), BYTES), BYTES);
  check_gone(nothing);
}

// In cells, slabs and large blocks, of a declared epoch and of the default one.
static tslab_epoch epoch_of_kind(int kind) {
  if (kind == 0) return TSLAB_DEFAULT;
  return EPOCHS_OPEN(.first_cell_bytes = kind == 1 ? 0 : TSLAB_NO_CELLS);
}

static void objects_live_until_they_are_freed(void) {
  for (int kind = 0; kind < 3; kind++) {
    tslab_epoch epoch = epoch_of_kind(kind);
    for (int i = 0; i < MANY; i++) handles[i] = alloc(epoch, sizes[i % SIZES]);
    for (int i = 0; i < MANY; i++) {
      CHECK(tslab_handle_get(handles[i]) == handles[i].block);
      CHECK(pattern_is(handles[i].block, sizes[i % SIZES], (unsigned)sizes[i % SIZES],
                       sizes[i % SIZES]));
      free_one(handles[i]);
    }
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
    if (kind != 0) epochs_close(epoch, 0);
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
  }
  epochs_check_all_free();
}

// Freed where the block becomes hot: in its own epoch.
static void freed_inside_the_epoch(void) {
  for (int kind = 1; kind < 3; kind++) {
    tslab_epoch epoch = epoch_of_kind(kind);
    tslab_scope scope;
    epochs_enter(&scope, epoch);
    for (int i = 0; i < MANY; i++) handles[i] = alloc(epoch, sizes[i % SIZES]);
    for (int i = 0; i < MANY; i++) free_one(handles[(i * 7) % MANY]);
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
    epochs_leave(&scope);
  }
}

// Two neighbours freed one after the other: the later one's link is their distance.
static void links_of_hot_blocks_are_no_stamps(void) {
  for (int i = 0; i < MANY; i++) handles[i] = alloc(TSLAB_DEFAULT, BYTES);
  for (int i = 0; i < MANY; i++) {
    for (int j = 0; j < MANY; j++) {
      uintptr_t distance = (uintptr_t)handles[i].block ^ (uintptr_t)handles[j].block;
      if (i == j || distance != handles[i].stamp) continue;
      if (!tslab_handle_free(handles[j]) || !tslab_handle_free(handles[i])) continue;
      check_gone(handles[i]);
    }
  }
}

static void numbers_in_later_objects_are_no_stamps(void) {
  for (int i = 0; i < MANY; i++) handles[i] = alloc(TSLAB_DEFAULT, BYTES);
  for (int i = 0; i < MANY; i++) CHECK(tslab_handle_free(handles[i]));
  for (uint64_t number = 0; number < MANY; number++) {
    uint64_t *plain = tslab_malloc(BYTES + 16);
    for (int word = 0; word < BYTES / 8; word++) plain[word] = MANY - number;
    for (int i = 0; i < MANY; i++) CHECK(tslab_handle_get(handles[i]) == NULL);
  }
}

static void later_objects_have_other_handles(void) {
  for (int kind = 0; kind < 3; kind++) {
    tslab_epoch epoch = epoch_of_kind(kind);
    for (int i = 0; i < SIZES; i++) {
      tslab_handle first = alloc(epoch, sizes[i]);
      free_one(first);
      for (int again = 0; again < 100; again++) {
        tslab_handle next = alloc(epoch, sizes[i]);
        check_gone(first);
        CHECK(tslab_handle_get(next) == next.block);
        free_one(next);
      }
    }
  }
}

static void survivors_keep_their_handles(void) {
  for (int kind = 1; kind < 3; kind++) {
    tslab_epoch epoch = epoch_of_kind(kind);
    for (int i = 0; i < SIZES; i++) handles[i] = alloc(epoch, sizes[i]);
    epochs_close(epoch, SIZES);
    for (int i = 0; i < SIZES; i++) CHECK(tslab_handle_get(handles[i]) == handles[i].block);
    for (int i = 0; i < SIZES; i++) free_one(handles[i]);
    CHECK(epochs_is_over(epoch));
  }
  epochs_check_all_free();
}

// Also while the memory belongs to the slot's next epoch, stamps and all.
static void released_objects_are_gone(void) {
  for (int kind = 1; kind < 3; kind++) {
    tslab_epoch epoch = epoch_of_kind(kind);
    for (int i = 0; i < MANY; i++) handles[i] = alloc(epoch, sizes[i % SIZES]);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
    tslab_epoch next = epoch_of_kind(kind);
    for (int i = 0; i < MANY; i++) alloc(next, sizes[i % SIZES]);
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
    CHECK_EQ(epochs_stats(next).live_objects, MANY);
    CHECK_EQ(tslab_epoch_release(next), 0);
    tslab_trim(0);
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
  }
}

// Option `release:poison`: nobody may read their stamps.
static void released_objects_that_wait_are_gone(void) {
  tsl_options.release = TSL_RELEASE_POISON;
  for (int kind = 1; kind < 3; kind++) {
    tslab_epoch epoch = epoch_of_kind(kind);
    for (int i = 0; i < MANY; i++) handles[i] = alloc(epoch, sizes[i % SIZES]);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    CHECK_EQ(epochs_stats(epoch).state, TSLAB_RELEASED);
    for (int i = 0; i < MANY; i++) check_gone(handles[i]);
  }
}

static void wrong_handles_are_refused(void) {
  tslab_epoch epoch = epochs_open();
  tslab_handle right = alloc(epoch, BYTES), wrong = right;
  wrong.stamp++;
  check_gone(wrong);
  wrong = right;
  wrong.epoch = epochs_open();
  check_gone(wrong);
  wrong = right;
  wrong.block = (char *)right.block + 16;
  check_gone(wrong);
  wrong.block = &wrong;
  check_gone(wrong);
  CHECK(tslab_handle_get(right) == right.block);
}

// The first stamp of a process whose system gives another random number.
static uint64_t first_stamp(unsigned numbers_before) {
  int ends[2], status;
  uint64_t stamp = 0;
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) {
    while (numbers_before-- > 0) tsl_os_random();
    tslab_handle handle = alloc(epochs_open(), BYTES);
    CHECK_EQ(write(ends[1], &handle.stamp, sizeof handle.stamp), sizeof handle.stamp);
    _exit(EXIT_SUCCESS);
  }
  CHECK_EQ(read(ends[0], &stamp, sizeof stamp), sizeof stamp);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  return stamp;
}

static void stamps_differ_between_processes(void) {
  CHECK(first_stamp(0) == first_stamp(0));
  CHECK(first_stamp(0) != first_stamp(1));
}

static void check_alloc_refused(tslab_epoch epoch, size_t bytes, int error) {
  errno = 0;
  tslab_handle handle = tslab_handle_alloc(epoch, bytes);
  CHECK_EQ(errno, error);
  CHECK(handle.block == NULL && handle.epoch == 0 && handle.stamp == 0);
}

static void allocation_is_refused(void) {
  tslab_epoch epoch = epochs_open();
  tslab_handle survivor = alloc(epoch, BYTES);
  check_alloc_refused(epoch, most, ENOMEM);
  check_alloc_refused(epoch, most - 15, ENOMEM);
  check_alloc_refused(epoch, most / 2, ENOMEM);
  check_alloc_refused(TSLAB_NO_EPOCH, BYTES, ESTALE);
  os_fake_fail_all(OS_FAKE_COMMIT);
  check_alloc_refused(epoch, OS_FAKE_MOST_BYTES / 4, ENOMEM);
  os_fake_recover();
  epochs_close(epoch, 1);
  check_alloc_refused(epoch, BYTES, ECANCELED);
  CHECK_EQ(epochs_stats(epoch).late, 1);
  free_one(survivor);
  check_alloc_refused(epoch, BYTES, ESTALE);
}

// Each object is freed by one of the threads.
static uint32_t freed;

static void *free_all(void *unused) {
  for (int i = 0; i < MANY; i++) {
    if (tslab_handle_free(handles[i])) tsl_add_relaxed(&freed, 1);
    CHECK(tslab_handle_get(handles[i]) == NULL);
  }
  return unused;
}

static void threads_free_each_object_once(void) {
  tslab_epoch epoch = epochs_open();
  for (uint32_t round = 1; round <= 20; round++) {
    for (int i = 0; i < MANY; i++) handles[i] = alloc(epoch, BYTES);
    threads_run(free_all, NULL);
    CHECK_EQ(freed, round * MANY);
  }
  epochs_close(epoch, 0);
  CHECK(epochs_is_over(epoch));
}

// Threads allocate and free by handles in one epoch, and try old ones.
static tslab_epoch shared;
static uint32_t seeds;

static void *live_by_handles(void *unused) {
  tslab_handle mine[16] = {{0}}, old = {0};
  uint64_t seed = tsl_add_relaxed(&seeds, 1);
  for (int i = 0; i < ROUNDS; i++) {
    tslab_handle *at = &mine[test_random_below(&seed, 16)];
    CHECK_EQ(tslab_handle_free(*at), at->block != NULL);
    if (at->block != NULL) old = *at;
    *at = alloc(shared, sizes[test_random_below(&seed, 3)]);
    CHECK(tslab_handle_get(old) == NULL);
  }
  for (int i = 0; i < 16; i++) tslab_handle_free(mine[i]);
  return unused;
}

static void threads_live_by_handles(void) {
  shared = epochs_open();
  threads_run(live_by_handles, NULL);
  epochs_close(shared, 0);
  CHECK(epochs_is_over(shared));
}

int main(void) {
  RUN(a_handle_of_nothing);
  RUN(objects_live_until_they_are_freed);
  RUN(freed_inside_the_epoch);
  RUN(links_of_hot_blocks_are_no_stamps);
  RUN(numbers_in_later_objects_are_no_stamps);
  RUN(later_objects_have_other_handles);
  RUN(survivors_keep_their_handles);
  RUN(released_objects_are_gone);
  RUN(released_objects_that_wait_are_gone);
  RUN(wrong_handles_are_refused);
  RUN(stamps_differ_between_processes);
  RUN(allocation_is_refused);
  RUN(threads_free_each_object_once);
  RUN(threads_live_by_handles);
  return test_status();
}
