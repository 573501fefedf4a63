// What strdup makes in a scope lies in the scope's epoch where malloc is tslab's, and elsewhere the
// library says that it does not. The argument says which of the two is expected.
#include <stdbool.h>
#include <string.h>
#include <tslab.h>

int main(int count, char **arguments) {
  bool expected = count == 2 && strcmp(arguments[1], "captures") == 0;
  tslab_scope here;
  tslab_epoch epoch = tslab_epoch_open("stranger", NULL);
  if (tslab_scope_enter(&here, epoch) != 0) return 1;
  char *text = strdup("text");
  tslab_scope_leave(&here);
  if (tslab_captures_malloc() != expected) return 2;
  return (tslab_epoch_of(text) == epoch) == expected ? 0 : 3;
}
