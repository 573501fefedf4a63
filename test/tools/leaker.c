// leaker [EPOCHS]: a server whose requests leave something behind, and then waits until its input
// ends. Says its readiness on its output. Each of EPOCHS further requests leaves one object behind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>

enum { REQUESTS = 3, LARGE = 17, SMALL = 340 };

static void *kept[REQUESTS][LARGE + SMALL];

static void *keep(tslab_epoch epoch, size_t bytes) {
  void *block = tslab_epoch_malloc(epoch, bytes);
  if (block != NULL) memset(block, 1, bytes);
  return block;
}

static void serve(void **blocks) {
  tslab_epoch request = tslab_epoch_open("GET /upload", NULL);
  for (int i = 0; i < SMALL; i++) blocks[i] = keep(request, 128);
  for (int i = 0; i < LARGE; i++) blocks[SMALL + i] = keep(request, 256);
  for (int i = 0; i < 1000; i++) tslab_free(tslab_epoch_malloc(request, 100));
  tslab_epoch_close(request);
}

static void lose_one(void) {
  tslab_epoch page = tslab_epoch_open("GET /page", NULL);
  keep(page, 128);
  for (int i = 0; i < 9; i++) tslab_free(tslab_epoch_malloc(page, 100));
  tslab_epoch_close(page);
}

int main(int count, char **values) {
  tslab_epoch_options options = {.size = sizeof options, .hard_limit_bytes = (size_t)64 << 20};
  tslab_epoch session = tslab_epoch_open("session", &options);
  keep(session, 1000);
  for (int i = 0; i < REQUESTS; i++) serve(kept[i]);
  for (int i = 1; i < REQUESTS; i++) {
    for (int at = 0; at < LARGE + SMALL; at++) tslab_free(kept[i][at]);
  }
  for (int left = count > 1 ? atoi(values[1]) : 0; left > 0; left--) lose_one();
  puts("ready");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
