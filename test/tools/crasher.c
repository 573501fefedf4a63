// crasher: holds blocks in epochs, says what of it lives and where three of the blocks lie, and
// aborts. With an argument it waits instead.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>
#include <unistd.h>

enum { BLOCKS = 6000, LARGE_BYTES = 3 << 20 };

static void *others[BLOCKS], *large;

static char *keep(tslab_epoch epoch, size_t bytes) {
  char *block = tslab_epoch_malloc(epoch, bytes);
  if (block == NULL) exit(2);
  memset(block, 0x5a, bytes);
  return block;
}

// Leaves blocks in bins, in stocks, in gathers, and on their way to other heaps.
static void *free_some(void *unused) {
  for (int i = 0; i < BLOCKS; i += 3) tslab_free(others[i]);
  return unused;
}

static void fill(tslab_epoch epoch) {
  for (int i = 0; i < BLOCKS; i++) others[i] = keep(epoch, (size_t)(i % 90) * 40 + 1);
  large = keep(epoch, LARGE_BYTES);
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_some, NULL) != 0) exit(2);
  pthread_join(thread, NULL);
  for (int i = 1; i < BLOCKS; i += 6) tslab_free(others[i]);
}

static int tell_epoch(tslab_epoch epoch, void *comma) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  if (tslab_epoch_get_stats(epoch, &stats) != 0) return 0;
  printf("%s\n\"%" PRIu64 "\": {\"label\": \"%s\", \"live_objects\": %zu, \"live_bytes\": %zu}",
         (const char *)comma, epoch, stats.label, stats.live_objects, stats.live_bytes);
  strcpy(comma, ",");
  return 0;
}

int main(int count, char **arguments) {
  char comma[2] = "";
  (void)arguments;
  tslab_epoch request = tslab_epoch_open("GET /upload", NULL);
  tslab_epoch batch = tslab_epoch_open("batch", NULL);
  tslab_epoch small = tslab_epoch_open("small", NULL);
  fill(TSLAB_DEFAULT);
  fill(batch);
  char *before = keep(small, 100), *live = keep(small, 100), *after = keep(small, 100);
  fill(request);
  memcpy(live, "still here", 10);
  tslab_free(after);
  tslab_epoch_close(request);
  tslab_stats stats = {.size = sizeof stats};
  if (tslab_stats_get(&stats) != 0) return 2;
  printf(
      "{\"live_objects\": %zu, \"live_bytes\": %zu, \"before\": \"%p\", \"live\": \"%p\", "
      "\"freed\": \"%p\", \"large\": \"%p\", \"epochs\": {",
      stats.live_objects, stats.live_bytes, (void *)before, (void *)live, (void *)after, large);
  tslab_epochs_each(tell_epoch, comma);
  printf("}}\n");
  fflush(stdout);
  if (count > 1) pause();
  abort();
}
