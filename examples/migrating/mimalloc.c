// From a heap of mimalloc, which belongs to one thread, to an epoch, which any thread may enter.
#include <mimalloc.h>

#include "lines.h"

// --8<-- [start:before]
static size_t before(void) {
  mi_heap_t *request = mi_heap_new();
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++)
    lines = line_begin(mi_heap_malloc(request, sizeof *lines), lines, i);
  size_t total = lines_total(lines);
  mi_heap_destroy(request);
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
