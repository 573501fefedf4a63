// none: the face of the core that unit tests link: no warning about another malloc.
#include "alloc/face.h"

const char *const tsl_face_remedy = "";

bool tsl_face_captures(void) { return true; }

void tsl_face_part_libraries(void) {}

void tsl_face_begin(void) {}
