// From the prototype's current epoch, which epoch_advance turns, and its handles, to a rotation and
// handles that are checked.
#include "lines.h"

// --8<-- [start:after]
static size_t after(void) {
  tslab_rotation epochs = TSLAB_ROTATION("request");
  tslab_epoch current = tslab_rotation_current(&epochs);
  tslab_handle handle = tslab_handle_alloc(current, sizeof(struct line));
  struct line *lines = line_begin(tslab_handle_get(handle), NULL, 0);
  for (int i = 1; i < LINES; i++)
    lines = line_begin(tslab_epoch_malloc(current, sizeof *lines), lines, i);
  size_t total = lines_total(lines);
  tslab_rotation_advance(&epochs);
  for (struct line *line = lines, *next; line->next != NULL; line = next) {
    next = line->next;
    tslab_free(line);
  }
  EXPECT(tslab_handle_free(handle));
  EXPECT(!tslab_handle_free(handle));
  tslab_rotation_end(&epochs);
  return total;
}
// --8<-- [end:after]

int main(void) {
  EXPECT(after() > LINES);
  return 0;
}
