// first: the face of libtslab-preload.so and of libtslab.a: whether their malloc is the program's.
#include <stdlib.h>

#include "alloc/face.h"
#include "memory/region.h"
#include "override/libraries.h"
#include "override/override.h"
#include "override/sanitizer.h"

const char *const tsl_face_remedy = "put tslab before the library that has malloc now";

// The process's malloc and free. In the file that defines them (libc.c, and all.c with all others)
// compilers take the names for those definitions.
struct first {
  void *(*malloc)(size_t bytes);
  void (*free)(void *block);
};

static struct first first_of_process(void) {
  struct first first = {malloc, free};
  TSL_OPAQUE(first.malloc);
  TSL_OPAQUE(first.free);
  return first;
}

static bool is_first(void) { return first_of_process().malloc == tsl_own_malloc; }

// The name may have another address and still lead to this malloc, by a stub (PLT) of the program:
// an allocation decides.
bool tsl_face_captures(void) {
  if (is_first()) return true;
  struct first first = first_of_process();
  void *block = first.malloc(1);
  bool captures = tsl_map_lookup(block) != 0;
  first.free(block);
  return captures;
}

void tsl_face_part_libraries(void) { tsl_libraries_part(); }

// Where a sanitizer's malloc comes first there is no conflict.
void tsl_face_begin(void) {
  if (is_first()) tsl_sanitizer_step_aside();
}
