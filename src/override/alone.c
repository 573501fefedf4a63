// alone: the face of libtslab.so, which defines no names of other libraries.
#include "alloc/face.h"

const char *const tsl_face_remedy =
    "link libtslab-preload.so instead of libtslab.so, or start with LD_PRELOAD=libtslab-preload.so";

bool tsl_face_captures(void) { return false; }

void tsl_face_part_libraries(void) {}

void tsl_face_begin(void) {}
