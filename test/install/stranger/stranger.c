#include <stdlib.h>
#include <string.h>
#include <tslab.h>

int main(void) {
  char *ours = tslab_malloc(100);
  char *any = malloc(100);
  if (ours == NULL || any == NULL) return 1;
  memset(ours, 1, 100);
  memset(any, 1, 100);
  tslab_free(ours);
  free(any);
  return 0;
}
