// Active false sharing: do objects that two threads allocate at the same time lie on one cache
// line? (In the manner of cache-thrash.)
#include "common/sharing.h"

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_cache_thrash [THREADS [OBJECTS [WRITES]]]");
  sharing s = sharing_open("shape_cache_thrash", &a);
  sharing_run(&s);
}
