// From an arena of jemalloc, made and destroyed by mallctl, to an epoch.
#include <jemalloc/jemalloc.h>

#include "lines.h"

// --8<-- [start:before]
static size_t before(void) {
  unsigned arena;
  size_t size = sizeof arena;
  EXPECT(mallctl("arenas.create", &arena, &size, NULL, 0) == 0);
  int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++) lines = line_begin(mallocx(sizeof *lines, flags), lines, i);
  size_t total = lines_total(lines);
  char destroy[40];
  snprintf(destroy, sizeof destroy, "arena.%u.destroy", arena);
  EXPECT(mallctl(destroy, NULL, NULL, NULL, 0) == 0);
  return total;
}
// --8<-- [end:before]

// --8<-- [start:after]
static size_t after(void) {
  tslab_epoch request = tslab_epoch_open("request", NULL);
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++)
    lines = line_begin(tslab_epoch_malloc(request, sizeof *lines), lines, i);
  size_t total = lines_total(lines);
  EXPECT_DONE(tslab_epoch_release(request));
  return total;
}
// --8<-- [end:after]

int main(void) {
  EXPECT(before() == after());
  return 0;
}
