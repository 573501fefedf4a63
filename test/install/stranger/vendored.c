// What malloc makes in a scope lies in the scope's epoch where malloc is tslab's; tslab_malloc's
// block does in any case. The argument says which of the two is expected.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>

int main(int count, char **arguments) {
  bool expected = count == 2 && strcmp(arguments[1], "captures") == 0;
  tslab_scope here;
  tslab_epoch epoch = tslab_epoch_open("stranger", NULL);
  if (tslab_scope_enter(&here, epoch) != 0) return 1;
  void *ours = tslab_malloc(100), *any = malloc(100);
  tslab_scope_leave(&here);
  if (tslab_captures_malloc() != expected) return 2;
  if (tslab_epoch_of(ours) != epoch) return 3;
  if ((tslab_epoch_of(any) == epoch) != expected) return 4;
  tslab_free(ours);
  free(any);
  return tslab_epoch_close(epoch).objects == 0 ? 0 : 5;
}
