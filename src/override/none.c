// none: the core without a face, as tests link it. Nobody is told what they know.
#include "alloc/face.h"

const char *const tsl_face_remedy = "";

bool tsl_face_captures(void) { return true; }

void tsl_face_begin(void) {}
