// shapes: programs that epochs would not help, and such of which too little is known.
//   shapes SHAPE
// keep: all lives until the end. nest: objects die in the order of a stack. few: hardly any.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 100000, BYTES = 200, DEEP = 2000, NESTS = 200, FEW = 20000 };

static void *kept[COUNT];

// What is done with a result keeps a call from becoming a jump, which no stack would show.
__attribute__((noinline)) static void *block_make(size_t bytes) {
  void *block = malloc(bytes);
  if (block == NULL) abort();
  return memset(block, 1, bytes);
}

__attribute__((noinline)) static int all_keep(int count) {
  for (int i = 0; i < count; i++) {
    kept[i] = block_make(BYTES);
    if (i % 1000 == 0) usleep(2000);
  }
  return count;
}

// NOLINTNEXTLINE(misc-no-recursion)
__attribute__((noinline)) static int nest(int depth) {
  char *block = block_make(BYTES);
  int below = depth == 0 ? 0 : nest(depth - 1);
  below += block[0];
  free(block);
  return below;
}

static int all_nest(void) {
  int done = 0;
  for (int i = 0; i < NESTS; i++) {
    done += nest(DEEP);
    usleep(2000);
  }
  return done;
}

int main(int count, char **arguments) {
  int done = 0;
  if (count != 2) return 2;
  if (strcmp(arguments[1], "keep") == 0) done = all_keep(COUNT);
  if (strcmp(arguments[1], "nest") == 0) done = all_nest();
  if (strcmp(arguments[1], "few") == 0) done = all_keep(FEW / BYTES * 20);
  usleep(200000);
  return done > 0 ? 0 : 1;
}
