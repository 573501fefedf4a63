// leaker: a server whose requests leave something behind, and then one that waits until its input
// ends. Says its readiness on its output.
#include <stdio.h>
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

int main(void) {
  tslab_epoch_options options = {.size = sizeof options, .hard_limit_bytes = (size_t)64 << 20};
  tslab_epoch session = tslab_epoch_open("session", &options);
  keep(session, 1000);
  for (int i = 0; i < REQUESTS; i++) serve(kept[i]);
  for (int i = 1; i < REQUESTS; i++) {
    for (int at = 0; at < LARGE + SMALL; at++) tslab_free(kept[i][at]);
  }
  puts("ready");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
