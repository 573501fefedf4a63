#include "epoch/inspect.h"

#include "epochs.h"
#include "os/os.h"
#include "os_fake.h"
#include "takes.h"
#include "threads.h"

enum { BYTES = 100, SOME = 10, MANY = 2000, MIB = 1 << 20 };

static const size_t kinds[] = {0, TSLAB_NO_CELLS};  // of first cells

static void *blocks[MANY];

static void stats_of_a_new_epoch(void) {
  os_fake.now_ms = 5000;
  tslab_epoch parent = epochs_open(), epoch = EPOCHS_OPEN(.parent = parent);
  os_fake.now_ms += 70;
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.size, sizeof stats);
  CHECK_EQ(stats.epoch, epoch);
  CHECK_EQ(stats.parent, parent);
  CHECK(strcmp(stats.label, "test") == 0);
  CHECK_EQ(stats.state, TSLAB_OPEN);
  CHECK_EQ(stats.threads + stats.scopes + stats.children, 0);
  CHECK_EQ(stats.live_objects + stats.live_bytes + stats.held_bytes + stats.late, 0);
  CHECK_EQ(stats.age_ms, 70);
  CHECK_EQ(stats.closed_ms, 0);
  CHECK_EQ(epochs_stats(parent).children, 1);
  CHECK_EQ(epochs_stats(parent).parent, TSLAB_DEFAULT);
}

static void stats_of_the_default_epoch(void) {
  void *block = tslab_malloc(BYTES), *large = tslab_malloc(MIB);
  os_fake.now_ms += 100;
  tslab_epoch_stats stats = epochs_stats(TSLAB_DEFAULT);
  CHECK_EQ(stats.epoch, TSLAB_DEFAULT);
  CHECK_EQ(stats.state, TSLAB_OPEN);
  CHECK(strcmp(stats.label, "default") == 0);
  CHECK_EQ(stats.live_objects + stats.live_bytes + stats.held_bytes, 0);
  CHECK_EQ(stats.closed_ms, 0);
  tslab_free(block);
  tslab_free(large);
}

static void stats_before_the_first_allocation(void) {
  CHECK_EQ(epochs_stats(TSLAB_DEFAULT).state, TSLAB_OPEN);
}

static void stats_of_a_closed_epoch(void) {
  os_fake.now_ms = 5000;
  tslab_epoch epoch = epochs_open();
  void *block = epochs_alloc(epoch, BYTES);
  os_fake.now_ms += 30;
  epochs_close(epoch, 1);
  os_fake.now_ms += 12;
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.state, TSLAB_CLOSED);
  CHECK_EQ(stats.age_ms, 42);
  CHECK_EQ(stats.closed_ms, 12);
  CHECK_EQ(stats.live_objects, 1);
  tslab_free(block);
  CHECK(epochs_is_over(epoch));
}

static void objects_and_bytes_are_exact(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind]);
    size_t bytes = 0;
    for (size_t i = 0; i < 200; i++) {
      blocks[i] = epochs_alloc(epoch, i * i);
      bytes += takes_of(blocks[i]);
      epochs_check_live(epoch, i + 1, bytes);
    }
    for (size_t i = 0; i < 200; i += 2) {
      bytes -= takes_of(blocks[i]);
      epochs_free(blocks[i], i * i);
    }
    epochs_check_live(epoch, 100, bytes);
    CHECK_GE(epochs_stats(epoch).held_bytes, bytes);
    epochs_close(epoch, 100);
    epochs_check_live(epoch, 100, bytes);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
  epochs_check_all_free();
}

// What a thread inside frees becomes hot: it is free all the same.
static void hot_free_blocks_are_not_live(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  for (int i = 0; i < SOME; i++) blocks[i] = tslab_malloc(BYTES);
  for (int i = 0; i < SOME / 2; i++) tslab_free(blocks[i]);
  epochs_check_live(epoch, SOME / 2, SOME / 2 * takes(BYTES));
  CHECK_EQ(epochs_stats(epoch).scopes, 1);
  epochs_leave(&scope);
  epochs_check_live(epoch, SOME / 2, SOME / 2 * takes(BYTES));
}

static void stats_with_somebody_inside_a_closed_epoch(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  tslab_scope scope;
  epochs_enter(&scope, epoch);
  blocks[0] = tslab_malloc(BYTES);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  tslab_epoch_stats stats = epochs_stats(epoch);
  CHECK_EQ(stats.scopes, 1);
  CHECK_EQ(stats.threads, 1);
  CHECK_EQ(stats.live_objects, 1);
  epochs_leave(&scope);
  CHECK_EQ(epochs_stats(epoch).scopes, 0);
}

static void held_bytes_include_descendants(void) {
  tslab_epoch root = epochs_open(), child = EPOCHS_OPEN(.parent = root);
  tslab_epoch grandchild = EPOCHS_OPEN(.parent = child);
  epochs_alloc(child, MIB);
  epochs_alloc(grandchild, 2 * MIB);
  CHECK_EQ(epochs_stats(root).held_bytes, 3 * MIB);
  CHECK_EQ(epochs_stats(child).held_bytes, 3 * MIB);
  CHECK_EQ(epochs_stats(grandchild).held_bytes, 2 * MIB);
  epochs_check_live(root, 0, 0);
  epochs_check_live(child, 1, MIB);
  CHECK_EQ(tslab_epoch_release(child), 0);
  CHECK_EQ(epochs_stats(root).held_bytes, 0);
  CHECK_EQ(epochs_stats(root).children, 0);
}

static void *free_some(void *unused) {
  tslab_free(tslab_malloc(1));
  for (int i = 0; i < SOME; i++) epochs_free(blocks[i], BYTES);
  return unused;
}

static void freed_by_another_thread(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = kinds[kind]);
    epochs_alloc_many(blocks, epoch, BYTES, MANY);
    threads_run_one(free_some, NULL);
    epochs_check_live(epoch, MANY - SOME, (MANY - SOME) * takes(BYTES));
    epochs_close(epoch, MANY - SOME);
    epochs_check_live(epoch, MANY - SOME, (MANY - SOME) * takes(BYTES));
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
}

static tslab_block_info info_of(const void *block) {
  tslab_block_info info = {.size = sizeof info};
  CHECK_EQ(tslab_block_get_info(block, &info), 0);
  return info;
}

static void info_of_a_block_in_a_cell(void) {
  tslab_epoch epoch = epochs_open();
  epochs_alloc_many(blocks, epoch, BYTES, SOME);
  epochs_free(blocks[1], BYTES);
  for (int closed = 0; closed < 2; closed++) {
    tslab_block_info info = info_of(blocks[2]);
    CHECK_EQ(info.epoch, epoch);
    CHECK_EQ(info.usable_bytes, 112);
    CHECK_EQ(info.shared_bytes, 4096);
    CHECK_EQ(info.live, SOME - 1);
    CHECK_EQ(info.capacity, SOME);
    CHECK_EQ(tslab_epoch_of(blocks[1]), TSLAB_NO_EPOCH);
    CHECK_EQ(tslab_block_get_info(blocks[1], &info), EFAULT);
    if (closed == 0) epochs_close(epoch, SOME - 1);
  }
}

static void info_of_a_block_in_a_slab(void) {
  tslab_epoch epoch = EPOCHS_OPEN(.first_cell_bytes = TSLAB_NO_CELLS);
  epochs_alloc_many(blocks, epoch, 30000, SOME);
  tslab_block_info info = info_of(blocks[2]);
  CHECK_EQ(info.epoch, epoch);
  CHECK_EQ(info.usable_bytes, TSL_SECURE ? 30000 : 32768);
  CHECK_EQ(info.shared_bytes, 4 * TSL_UNIT_BYTES);
  CHECK_EQ(info.capacity, TSL_SECURE ? 7 : 8);
  CHECK_EQ(info.live, info.capacity);
  epochs_close(epoch, SOME);
  epochs_free(blocks[3], 30000);
  CHECK_EQ(info_of(blocks[2]).live, info.capacity - 1);
  CHECK_EQ(tslab_block_get_info(blocks[3], &info), EFAULT);
  CHECK_EQ(tslab_epoch_of(blocks[3]), TSLAB_NO_EPOCH);
}

static void info_of_a_large_block(void) {
  tslab_epoch epoch = epochs_open();
  char *block = epochs_alloc(epoch, 100000);
  tslab_block_info info = info_of(block);
  CHECK_EQ(info.epoch, epoch);
  CHECK_EQ(info.usable_bytes, 131072);
  CHECK_EQ(info.shared_bytes, 131072);
  CHECK_EQ(info.live, 1);
  CHECK_EQ(info.capacity, 1);
  CHECK_EQ(tslab_epoch_of(block + 16), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(block + 65536), TSLAB_NO_EPOCH);
  tslab_free(block);
  CHECK_EQ(tslab_block_get_info(block, &info), EFAULT);
}

static void info_of_the_default_epochs_blocks(void) {
  static const size_t sizes[] = {1, 100, 5000, 100000};
  epochs_open();
  for (int i = 0; i < 4; i++) {
    char *block = tslab_malloc(sizes[i]);
    CHECK_EQ(info_of(block).epoch, TSLAB_DEFAULT);
    CHECK_EQ(info_of(block).usable_bytes, tslab_usable_size(block));
    CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_of(block + 1), TSLAB_NO_EPOCH);
  }
}

static void what_is_no_block_has_no_epoch(void) {
  tslab_block_info info = {.size = sizeof info};
  int local = 0;
  CHECK_EQ(tslab_epoch_of(&local), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(NULL), TSLAB_NO_EPOCH);
  char *block = epochs_alloc(epochs_open(), BYTES);
  CHECK_EQ(tslab_epoch_of(&local), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(NULL), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(block + 8), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(block + 16), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of(block + 4000), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of((void *)tsl_region.base), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_epoch_of((void *)tsl_unit_address(tsl_region.units - 1)), TSLAB_NO_EPOCH);
  CHECK_EQ(tslab_block_get_info(&local, &info), EFAULT);
  CHECK_EQ(tslab_block_get_info(NULL, &info), EFAULT);
  info.size = sizeof info - 1;
  CHECK_EQ(tslab_block_get_info(block, &info), EINVAL);
}

static void advice_reaches_all_memory(void) {
  for (int kind = 0; kind < 2; kind++) {
    tslab_epoch epoch = epochs_fill(blocks, kinds[kind], 160), other = epochs_open();
    epochs_alloc(other, MIB);
    for (int closed = 0; closed < 2; closed++) {
      os_fake.use_bytes = 0;
      CHECK_EQ(tslab_epoch_advise(epoch, TSLAB_ADVISE_COLD), 0);
      CHECK_EQ(os_fake.use_bytes, epochs_stats(epoch).held_bytes);
      CHECK_EQ(os_fake.use_advised, TSL_OS_COLD);
      CHECK_EQ(tslab_epoch_advise(epoch, TSLAB_ADVISE_PAGEOUT), 0);
      CHECK_EQ(os_fake.use_advised, TSL_OS_PAGE_OUT);
      CHECK_EQ(tslab_epoch_advise(epoch, TSLAB_ADVISE_WILLNEED), 0);
      CHECK_EQ(os_fake.use_advised, TSL_OS_WILL_NEED);
      CHECK_EQ(os_fake.use_bytes, 3 * epochs_stats(epoch).held_bytes);
      if (closed == 0) epochs_close(epoch, 160);
    }
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  }
}

static void advice_is_refused(void) {
  tslab_epoch epoch = epochs_open(), over = epochs_open();
  epochs_alloc(epoch, BYTES);
  epochs_close(over, 0);
  CHECK_EQ(tslab_epoch_advise(TSLAB_DEFAULT, TSLAB_ADVISE_COLD), EPERM);
  CHECK_EQ(tslab_epoch_advise(over, TSLAB_ADVISE_COLD), ESTALE);
  CHECK_EQ(tslab_epoch_advise(epoch, (enum tslab_advice)(TSLAB_ADVISE_WILLNEED + 1)), EINVAL);
  CHECK_EQ(tslab_epoch_advise(epoch, (enum tslab_advice) - 1), EINVAL);
  CHECK_EQ(os_fake.use_bytes, 0);
}

int main(void) {
  RUN(stats_of_a_new_epoch);
  RUN(stats_of_the_default_epoch);
  RUN(stats_before_the_first_allocation);
  RUN(stats_of_a_closed_epoch);
  RUN(objects_and_bytes_are_exact);
  RUN(hot_free_blocks_are_not_live);
  RUN(stats_with_somebody_inside_a_closed_epoch);
  RUN(held_bytes_include_descendants);
  RUN(freed_by_another_thread);
  RUN_UNLESS_SECURE(info_of_a_block_in_a_cell);
  RUN(info_of_a_block_in_a_slab);
  RUN(info_of_a_large_block);
  RUN(info_of_the_default_epochs_blocks);
  RUN(what_is_no_block_has_no_epoch);
  RUN(advice_reaches_all_memory);
  RUN(advice_is_refused);
  return test_status();
}
