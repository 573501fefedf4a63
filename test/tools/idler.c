// Allocates and frees 64 MiB, says "ready", and sleeps. For each line that it reads it allocates
// for a moment, and says "worked".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, BLOCK_BYTES = 1 << 20, TIMES = 40000 };

static void *block_make(void) {
  void *block = malloc(BLOCK_BYTES);
  if (block == NULL) exit(EXIT_FAILURE);
  return memset(block, 1, BLOCK_BYTES);
}

static void say(const char *what) {
  puts(what);
  fflush(stdout);
}

int main(void) {
  static void *blocks[BLOCKS];
  char line[16];
  for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = block_make();
  for (unsigned i = 0; i < BLOCKS; i++) free(blocks[i]);
  say("ready");
  while (fgets(line, sizeof line, stdin) != NULL) {
    for (unsigned i = 0; i < TIMES; i++) free(malloc(16));
    say("worked");
  }
  return 0;
}
