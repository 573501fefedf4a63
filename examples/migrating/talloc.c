// From contexts of talloc, where each object may be a parent, to epochs, which alone have children.
#include <talloc.h>

#include "lines.h"

// --8<-- [start:before]
static size_t before(void) {
  void *connection = talloc_new(NULL);
  void *request = talloc_new(connection);
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++) lines = line_begin(talloc(request, struct line), lines, i);
  size_t total = lines_total(lines);
  talloc_free(connection);
  return total;
}
// --8<-- [end:before]

// --8<-- [start:after]
static size_t after(void) {
  tslab_epoch connection = tslab_epoch_open("connection", NULL);
  tslab_epoch_options below = {.size = sizeof below, .parent = connection};
  tslab_epoch request = tslab_epoch_open("request", &below);
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++)
    lines = line_begin(tslab_epoch_malloc(request, sizeof *lines), lines, i);
  size_t total = lines_total(lines);
  EXPECT_DONE(tslab_epoch_release(connection));
  return total;
}
// --8<-- [end:after]

int main(void) {
  EXPECT(before() == after());
  return 0;
}
