// Passive false sharing: objects of one thread, side by side on one cache line, are handed to
// several threads, each frees its own; does it get that place again? (In the manner of
// cache-scratch.)
#include "common/memory.h"
#include "common/sharing.h"
#include "common/threads.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_cache_scratch [THREADS [OBJECTS [WRITES]]]");
  sharing s = sharing_open("shape_cache_scratch", &a);
  char *handed[THREADS_MAX];
  for (unsigned i = 0; i < s.threads; i++) {
    handed[i] = malloc(8);
    memory_demand(handed[i]);
  }
  s.handed = handed;
  sharing_run(&s);
}
