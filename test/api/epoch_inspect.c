// What epochs say of themselves and refuse: limits, figures, walks, handles, rotations.
#include "epochs.h"

struct told {
  int soft, hard;
  tslab_epoch epoch, current, closes;
  size_t held_bytes, wanted_bytes;
  void *landed;
};

static void limit_told(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                       size_t wanted_bytes, void *context) {
  struct told *told = context;
  *(limit == TSLAB_SOFT_LIMIT ? &told->soft : &told->hard) += 1;
  told->epoch = epoch;
  told->held_bytes = held_bytes;
  told->wanted_bytes = wanted_bytes;
  told->current = tslab_epoch_current();
  free(malloc(100));
  if (told->closes == TSLAB_DEFAULT) return;
  CHECK_EQ(tslab_epoch_release(told->closes), 0);
  told->closes = TSLAB_DEFAULT;
}

static tslab_epoch limited_open(tslab_epoch parent, size_t soft, size_t hard, struct told *told) {
  *told = (struct told){.closes = TSLAB_DEFAULT, .current = TSLAB_NO_EPOCH};
  tslab_epoch_options options = {
      .size = sizeof options,
      .parent = parent,
      .soft_limit_bytes = soft,
      .hard_limit_bytes = hard,
      .on_limit = limit_told,
      .limit_context = told,
  };
  return epoch_open(&options);
}

// Plain malloc of one size until it is refused; returns how many there were.
static size_t fill(size_t size) {
  size_t count = 0;
  errno = 0;
  while (malloc(size) != NULL) CHECK_LE(++count, 1000000);
  CHECK_EQ(errno, ENOMEM);
  return count;
}

static void hard_limit_of(size_t size, size_t limit) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, 0, limit, &told);
  tslab_scope scope;
  scope_enter(&scope, epoch);
  size_t count = fill(size);
  CHECK_THAT(count * size >= limit / (TSL_SECURE ? 3 : 2), "%zu blocks of %zu bytes", count, size);
  CHECK_LE(count * size, limit);
  CHECK_GE(told.hard, 1);
  CHECK_EQ(told.soft, 0);
  CHECK_EQ(told.epoch, epoch);
  CHECK_EQ(told.current, TSLAB_DEFAULT);
  CHECK_LE(told.held_bytes, limit);
  CHECK(told.held_bytes + told.wanted_bytes > limit);
  CHECK_LE(epoch_stats(epoch).held_bytes, limit);
  CHECK_REFUSED(calloc(1, 2 * limit), ENOMEM);
  CHECK_REFUSED(aligned_alloc(4096, 2 * limit), ENOMEM);
  CHECK_EQ(tslab_epoch_current(), epoch);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_REFUSED(tslab_epoch_malloc(epoch, 2 * limit), ENOMEM);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  stale_check(epoch);
}

static void hard_limit_test(void) {
  for (size_t size = 16; size <= 100 * KIB; size = size * 3 / 2)
    hard_limit_of(size, size > 8 * KIB ? 4 * MIB : MIB);
}

// A refused realloc leaves the block and its content alone.
static void realloc_limit_test(void) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, 0, 2 * MIB, &told);
  for (size_t size = 64; size <= MIB; size *= 16) {
    unsigned char *block = tslab_epoch_malloc(epoch, size);
    pattern_fill(block, size, 5);
    CHECK_REFUSED(realloc(block, 3 * MIB), ENOMEM);
    pattern_check(block, size, 5);
    CHECK_LANDS(epoch, block);
    free(block);
  }
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  stale_check(epoch);
}

// The callback makes room: the allocation succeeds after all.
static void room_made_test(void) {
  struct told told, ignored;
  tslab_epoch parent = limited_open(TSLAB_DEFAULT, 0, 4 * MIB, &told);
  tslab_epoch child = limited_open(parent, 0, 0, &ignored);
  CHECK(tslab_epoch_malloc(child, 3 * MIB) != NULL);
  told.closes = child;
  void *block = tslab_epoch_malloc(parent, 3 * MIB);
  CHECK_LANDS(parent, block);
  CHECK_EQ(told.hard, 1);
  stale_check(child);
  CHECK_EQ(tslab_epoch_release(parent), 0);
}

static void soft_limit_test(void) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, MIB, 0, &told);
  for (int turn = 1; turn <= 3; turn++) {
    void *first = tslab_epoch_malloc(epoch, 512 * KIB);
    CHECK_EQ(told.soft, turn - 1);
    void *second = tslab_epoch_malloc(epoch, 600 * KIB), *third = tslab_epoch_malloc(epoch, MIB);
    CHECK(first != NULL && second != NULL && third != NULL);
    CHECK_EQ(told.soft, turn);
    CHECK_EQ(told.epoch, epoch);
    free(third);
    CHECK_EQ(told.soft, turn);
    free(second);
    free(first);
  }
  CHECK_EQ(told.hard, 0);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
}

static void *grow(void *block) { return realloc(block, 2 * MIB); }
static void *grow_in_place(void *block) {
  return tslab_resize_in_place(block, 2 * MIB) ? block : NULL;
}

// The callback runs in a thread that has allocated nothing before.
static void first_call_test(void *(*resize)(void *)) {
  struct told told;
  tslab_epoch epoch = limited_open(TSLAB_DEFAULT, MIB, 0, &told);
  void *block = tslab_epoch_malloc(epoch, 512 * KIB);
  CHECK_LANDS(epoch, block);
  thread_run(resize, block);
  CHECK_EQ(told.soft, 1);
  CHECK_EQ(told.current, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

// What descendants hold counts for all of their ancestors, and any of these can refuse.
static void limit_chain_test(void) {
  struct told told[3];
  tslab_epoch top = limited_open(TSLAB_DEFAULT, 0, 2 * MIB, &told[0]);
  tslab_epoch middle = limited_open(top, MIB, 0, &told[1]);
  tslab_epoch bottom = limited_open(middle, 0, 8 * MIB, &told[2]);
  void *block = tslab_epoch_malloc(bottom, 3 * MIB / 2);
  CHECK_LANDS(bottom, block);
  CHECK_EQ(epoch_stats(top).held_bytes, 3 * MIB / 2);
  CHECK_EQ(epoch_stats(top).live_objects, 0);
  CHECK_EQ(told[1].soft, 1);
  CHECK_EQ(told[1].epoch, middle);
  CHECK_REFUSED(tslab_epoch_malloc(bottom, MIB), ENOMEM);
  CHECK_EQ(told[0].hard, 1);
  CHECK_EQ(told[0].epoch, top);
  CHECK_EQ(told[2].hard, 0);
  CHECK_EQ(epoch_stats(bottom).held_bytes, 3 * MIB / 2);
  CHECK_EQ(epoch_stats(middle).held_bytes, 3 * MIB / 2);
  CHECK_REFUSED(tslab_epoch_malloc(top, MIB), ENOMEM);
  free(block);
  CHECK_EQ(epoch_stats(top).held_bytes, 0);
  CHECK_LANDS(top, block = tslab_epoch_malloc(top, MIB));
  CHECK_EQ(tslab_epoch_release(top), 0);
  stale_check(bottom);
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

static void handle_test(void) {
  enum { HANDLES = 500 };
  static tslab_handle handles[HANDLES];
  tslab_handle none = {0};
  CHECK(tslab_handle_get(none) == NULL && !tslab_handle_free(none));
  for (int round = 0; round < 3; round++) {
    tslab_epoch epoch = epoch_open(NULL);
    for (size_t i = 0; i < HANDLES; i++) {
      handles[i] = tslab_handle_alloc(epoch, i * i);
      CHECK(tslab_handle_get(handles[i]) == handles[i].block && handles[i].block != NULL);
      pattern_fill(handles[i].block, i * i, (unsigned)i);
    }
    for (size_t i = 0; i < HANDLES; i += 2) {
      pattern_check(handles[i].block, i * i, (unsigned)i);
      CHECK(tslab_handle_free(handles[i]));
      CHECK(tslab_handle_get(handles[i]) == NULL);
      CHECK(!tslab_handle_free(handles[i]));
    }
    CHECK_EQ(epoch_stats(epoch).live_objects, HANDLES / 2);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    for (size_t i = 0; i < HANDLES; i++) {
      CHECK(tslab_handle_get(handles[i]) == NULL);
      CHECK(!tslab_handle_free(handles[i]));
    }
  }
  tslab_handle lasting = tslab_handle_alloc(TSLAB_DEFAULT, 100);
  CHECK(tslab_handle_get(lasting) != NULL && tslab_handle_free(lasting));
  CHECK(tslab_handle_get(lasting) == NULL && !tslab_handle_free(lasting));
}

static void rotation_requests_test(void) {
  tslab_rotation rotation = TSLAB_ROTATION("turns", .every_requests = 10);
  tslab_epoch ids[5];
  for (int turn = 0; turn < 5; turn++) {
    for (int request = 0; request < 10; request++) {
      tslab_epoch current = tslab_rotation_current(&rotation);
      if (request == 0) ids[turn] = current;
      CHECK_EQ(current, ids[turn]);
      void *block = tslab_epoch_malloc(current, 100);
      CHECK_LANDS(current, block);
      free(block);
    }
    CHECK(turn == 0 || ids[turn] != ids[turn - 1]);
    if (turn >= 1) CHECK_EQ(epoch_stats(ids[turn - 1]).state, TSLAB_OPEN);
    if (turn >= 2) stale_check(ids[turn - 2]);
  }
  CHECK(strcmp(epoch_stats(ids[4]).label, "turns") == 0);
  tslab_rotation_end(&rotation);
  stale_check(ids[3]);
  stale_check(ids[4]);
  CHECK(tslab_rotation_current(&rotation) != ids[4]);
  tslab_rotation_end(&rotation);
}

static void rotation_time_test(void) {
  tslab_epoch_options options = {.size = sizeof options, .hard_limit_bytes = MIB};
  tslab_rotation rotation = TSLAB_ROTATION("time", .options = &options, .every_ms = 30);
  tslab_epoch first = tslab_rotation_current(&rotation);
  CHECK_REFUSED(tslab_epoch_malloc(first, 2 * MIB), ENOMEM);
  usleep(40000);
  tslab_epoch second = tslab_rotation_current(&rotation);
  CHECK(second != first);
  tslab_epoch third = tslab_rotation_advance(&rotation);
  CHECK(third != second);
  stale_check(first);
  CHECK_EQ(epoch_stats(second).state, TSLAB_OPEN);
  tslab_rotation_end(&rotation);
  stale_check(third);
}

int main(void) {
  hard_limit_test();
  realloc_limit_test();
  room_made_test();
  soft_limit_test();
  first_call_test(grow);
  first_call_test(grow_in_place);
  limit_chain_test();
  options_test();
  stats_test();
  epochs_each_test();
  blocks_each_test();
  blocks_free_test();
  info_test();
  handle_test();
  rotation_requests_test();
  rotation_time_test();
  epochs_each_test();
  return 0;
}
