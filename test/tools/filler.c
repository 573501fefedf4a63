// filler: fills memory in the way that its argument names, says what the library itself makes of
// it, and waits until its input ends.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tslab.h>

enum {
  BLOCKS = 200000,
  SMALL = 120,
  LARGE_BYTES = 3 << 20,
  EPOCHS = 200,
  MANY_EPOCHS = 10000,
  REST_MS = 300,
  REFILLS = 4000
};

static void *blocks[BLOCKS];

static void *keep(void *block, size_t bytes) {
  if (block != NULL) memset(block, 1, bytes);
  return block;
}

// Objects of many sizes, all of them in use.
static void fill_small(void) {
  for (int i = 0; i < BLOCKS; i++) {
    size_t bytes = (size_t)(i % SMALL) + 1;
    blocks[i] = keep(tslab_malloc(bytes), bytes);
  }
}

// Slabs of which a few objects are left.
static void fill_sparse(void) {
  fill_small();
  for (int i = 0; i < BLOCKS; i++) {
    if (i % 100 != 0) tslab_free(blocks[i]);
  }
}

// Blocks of their own, half of each never written to.
static void fill_large(void) {
  for (int i = 0; i < 10; i++) blocks[i] = keep(tslab_malloc(LARGE_BYTES), LARGE_BYTES / 2);
}

// A large block that was given back a moment ago.
static void fill_dirty(void) {
  fill_small();
  for (int i = 0; i < 8; i++) blocks[i] = keep(tslab_malloc(LARGE_BYTES), LARGE_BYTES);
  for (int i = 0; i < 8; i++) tslab_free(blocks[i]);
}

// Epochs with objects in cells and slabs, some of them closed.
static void fill_epochs(void) {
  for (int i = 0; i < EPOCHS; i++) {
    tslab_epoch epoch = tslab_epoch_open("request", NULL);
    for (int n = 0; n < 300; n++) keep(tslab_epoch_malloc(epoch, 200), 200);
    if (i % 2 == 0) tslab_epoch_close(epoch);
  }
}

static void fill_many_epochs(void) {
  for (int i = 0; i < MANY_EPOCHS; i++) {
    tslab_epoch epoch = tslab_epoch_open("request", NULL);
    for (int n = 0; n < 3; n++) keep(tslab_epoch_malloc(epoch, 200), 200);
  }
}

static const struct {
  const char *name;
  void (*fill)(void);
} shapes[] = {{"small", fill_small}, {"sparse", fill_sparse}, {"large", fill_large},
              {"dirty", fill_dirty}, {"epochs", fill_epochs}, {"many_epochs", fill_many_epochs}};

static bool fill(const char *name) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (strcmp(shapes[i].name, name) != 0) continue;
    shapes[i].fill();
    return true;
  }
  return false;
}

// The process tells of itself every few refills; the first of them begin the time that it must have
// lived for. The last ones take next to nothing, so that little changes after it has told.
static void tell(void) {
  struct timespec rest = {0, REST_MS * 1000000L};
  for (size_t i = 0; i < 2 * REFILLS; i++) {
    keep(tslab_malloc(16), 16);
    if (i == REFILLS) nanosleep(&rest, NULL);
  }
}

int main(int count, char **arguments) {
  if (count != 2 || !fill(arguments[1])) return 2;
  tell();
  tslab_stats stats = {.size = sizeof stats};
  if (tslab_stats_get(&stats) != 0) return 3;
  printf(
      "{\"live\": %zu, \"large\": %zu, \"hot\": %zu, \"free\": %zu, \"cached\": %zu, "
      "\"dirty\": %zu, \"records\": %zu, \"untouched\": %zu, \"resident\": %zu}\n",
      stats.live_bytes, stats.large_bytes, stats.hot_bytes, stats.free_bytes, stats.cached_bytes,
      stats.dirty_bytes, stats.metadata_bytes, stats.untouched_bytes, stats.resident_bytes);
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
