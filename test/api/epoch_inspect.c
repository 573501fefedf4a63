// What epochs say of themselves: figures, and walks over epochs and blocks.
#include "epochs.h"

static void *stays_run(void *data) {
  static _Thread_local tslab_scope scope;
  scope_enter(&scope, *(tslab_epoch *)data);
  void *block = malloc(100);
  scope_leave(&scope, TSLAB_DEFAULT);
  return block;
}

static void stats_test(void) {
  tslab_epoch parent = epoch_open(NULL), epoch = epoch_open_child(parent);
  tslab_scope scope;
  thread_run(stays_run, &epoch);
  scope_enter(&scope, epoch);
  void *block = malloc(1000);
  usleep(20000);
  tslab_epoch_stats stats = epoch_stats(epoch);
  CHECK_EQ(stats.epoch, epoch);
  CHECK_EQ(stats.parent, parent);
  CHECK(strcmp(stats.label, "test") == 0);
  CHECK_EQ(stats.state, TSLAB_OPEN);
  CHECK_EQ(stats.threads, 2);
  CHECK_EQ(stats.scopes, 1);
  CHECK_EQ(stats.live_objects, 2);
  size_t usable = malloc_usable_size(block) + tslab_good_size(100);
  CHECK_GE(stats.live_bytes, usable);
  if (!TSL_SECURE) CHECK_EQ(stats.live_bytes, usable);
  CHECK_GE(stats.held_bytes, stats.live_bytes);
  CHECK(stats.age_ms >= 19 && stats.age_ms < 60000);
  CHECK_EQ(stats.closed_ms, 0);
  CHECK_EQ(epoch_stats(parent).children, 1);
  CHECK_EQ(epoch_stats(parent).held_bytes, stats.held_bytes);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 2);
  for (int i = 0; i < 5; i++) CHECK_REFUSED(tslab_epoch_malloc(epoch, 10), ECANCELED);
  usleep(20000);
  stats = epoch_stats(epoch);
  CHECK_EQ(stats.late, 5);
  CHECK_EQ(stats.state, TSLAB_CLOSED);
  CHECK(stats.closed_ms >= 19 && stats.closed_ms < stats.age_ms);
  stats.size++;
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), EINVAL);
  CHECK_EQ(epoch_stats(TSLAB_DEFAULT).live_objects, 0);
  CHECK_EQ(tslab_epoch_release(parent), 0);
}

struct seen {
  tslab_epoch ids[8];
  int count, stop_at;
};

static int epoch_see(tslab_epoch epoch, void *context) {
  struct seen *seen = context;
  CHECK(seen->count < 8);
  seen->ids[seen->count++] = epoch;
  return seen->count == seen->stop_at ? 42 : 0;
}

static void epochs_each_test(void) {
  struct seen seen = {.stop_at = 0};
  CHECK_EQ(tslab_epochs_each(epoch_see, &seen), 0);
  CHECK_EQ(seen.count, 0);
  tslab_epoch ids[] = {epoch_open(NULL), epoch_open(NULL), epoch_open(NULL)};
  void *block = tslab_epoch_malloc(ids[1], 10);
  CHECK_EQ(tslab_epoch_close(ids[1]).objects, 1);
  CHECK_EQ(tslab_epoch_close(ids[2]).objects, 0);
  CHECK_EQ(tslab_epochs_each(epoch_see, &seen), 0);
  CHECK_EQ(seen.count, 2);
  CHECK(seen.ids[0] != seen.ids[1]);
  for (int i = 0; i < 2; i++) CHECK(seen.ids[i] == ids[0] || seen.ids[i] == ids[1]);
  seen = (struct seen){.stop_at = 1};
  CHECK_EQ(tslab_epochs_each(epoch_see, &seen), 42);
  CHECK_EQ(seen.count, 1);
  free(block);
  CHECK_EQ(tslab_epoch_release(ids[0]), 0);
}

enum { WALKED = 3000 };
static void *walked[WALKED];
static unsigned char walked_seen[WALKED];

static int block_see(void *block, size_t bytes, void *context) {
  int *count = context;
  size_t index;
  memcpy(&index, block, sizeof index);
  CHECK_THAT(index < WALKED && walked[index] == block, "%p is no block", block);
  CHECK_EQ(walked_seen[index]++, 0);
  CHECK_EQ(bytes, malloc_usable_size(block));
  return ++*count == -1;
}

static int block_free(void *block, size_t bytes, void *context) {
  CHECK_EQ(bytes, malloc_usable_size(block));
  ++*(int *)context;
  free(block);
  return 0;
}

static int block_stop(void *block, size_t bytes, void *context) {
  (void)block, (void)bytes, (void)context;
  return 17;
}

static void blocks_each_of(size_t first_cell_bytes, size_t most) {
  tslab_epoch_options options = {.size = sizeof options, .first_cell_bytes = first_cell_bytes};
  tslab_epoch epoch = epoch_open(&options);
  int count = 0;
  for (size_t i = 0; i < WALKED; i++) {
    walked[i] = tslab_epoch_malloc(epoch, 8 + i * 7919 % most);
    memcpy(walked[i], &i, sizeof i);
    if (i % 3 == 0) free(tslab_epoch_malloc(epoch, 8 + i * 977 % most));
  }
  for (int closed = 0; closed < 2; closed++) {
    memset(walked_seen, 0, sizeof walked_seen);
    CHECK_EQ(tslab_epoch_blocks_each(epoch, block_see, &count), 0);
    CHECK_EQ(count, WALKED);
    CHECK_EQ(epoch_stats(epoch).live_objects, WALKED);
    CHECK_EQ(tslab_epoch_blocks_each(epoch, block_stop, NULL), 17);
    CHECK_EQ(tslab_epoch_close(epoch).objects, closed ? 0 : WALKED);
    count = 0;
  }
  CHECK_EQ(tslab_epoch_blocks_each(epoch, block_free, &count), 0);
  CHECK_EQ(count, WALKED);
  stale_check(epoch);
  CHECK_EQ(tslab_epoch_blocks_each(epoch, block_free, &count), ESTALE);
}

static void blocks_each_test(void) {
  blocks_each_of(0, 100);
  blocks_each_of(0, 3000);
  blocks_each_of(TSLAB_NO_CELLS, 3000);
  blocks_each_of(0, 60000);
  CHECK_EQ(tslab_epoch_blocks_each(TSLAB_DEFAULT, block_stop, NULL), EPERM);
}

// Freed while walked, in an open epoch.
static void blocks_free_test(void) {
  int count = 0;
  tslab_epoch epoch = epoch_open(NULL);
  for (size_t i = 0; i < WALKED; i++)
    CHECK(tslab_epoch_malloc(epoch, 8 + i * 7919 % 60000) != NULL);
  CHECK_EQ(tslab_epoch_blocks_each(epoch, block_free, &count), 0);
  CHECK_EQ(count, WALKED);
  CHECK_EQ(epoch_stats(epoch).live_objects, 0);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  stale_check(epoch);
}

static void info_of(tslab_epoch epoch, size_t size) {
  tslab_block_info info = {.size = sizeof info}, after;
  char *block = tslab_epoch_malloc(epoch, size), *other = tslab_epoch_malloc(epoch, size);
  memset(block, 1, size);
  CHECK_EQ(tslab_block_get_info(block, &info), 0);
  CHECK_EQ(info.epoch, epoch);
  CHECK_EQ(info.usable_bytes, malloc_usable_size(block));
  CHECK_GE(info.shared_bytes, info.usable_bytes);
  CHECK(info.live >= 1 && info.live <= info.capacity);
  CHECK_LE(info.shared_bytes, epoch_stats(epoch).held_bytes);
  after = info;
  if (size > 16) CHECK_EQ(tslab_block_get_info(block + 16, &after), EFAULT);
  CHECK_EQ(tslab_block_get_info(block + 1, &after), EFAULT);
  after.size--;
  CHECK_EQ(tslab_block_get_info(block, &after), EINVAL);
  free(other);
  free(block);
}

static void info_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  tslab_block_info info = {.size = sizeof info};
  for (size_t size = 1; size <= MIB; size = size * 2 + 1) info_of(epoch, size);
  CHECK_EQ(tslab_block_get_info(&info, &info), EFAULT);
  CHECK_EQ(tslab_block_get_info(NULL, &info), EFAULT);
  CHECK_EQ(tslab_epoch_of(&info), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(NULL), TSLAB_NO_EPOCH);
  void *first = tslab_epoch_malloc(epoch, 64), *second = tslab_epoch_malloc(epoch, 64);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 2);
  CHECK_EQ(tslab_block_get_info(first, &info), 0);
  CHECK_EQ(info.live, 2);
  free(second);
  CHECK_EQ(tslab_block_get_info(second, &info), EFAULT);
  CHECK_EQ(tslab_block_get_info(first, &info), 0);
  CHECK_EQ(info.live, 1);
  for (enum tslab_advice advice = TSLAB_ADVISE_COLD; advice <= TSLAB_ADVISE_WILLNEED; advice++) {
    int error = tslab_epoch_advise(epoch, advice);
    CHECK_THAT(error == 0 || error == ENOTSUP, "%d", error);
  }
  CHECK_EQ(tslab_epoch_advise(epoch, (enum tslab_advice)9), EINVAL);
  CHECK_EQ(tslab_epoch_advise(TSLAB_DEFAULT, TSLAB_ADVISE_COLD), EPERM);
  free(first);
  stale_check(epoch);
}

int main(void) {
  stats_test();
  epochs_each_test();
  blocks_each_test();
  blocks_free_test();
  info_test();
  epochs_each_test();
  return 0;
}
